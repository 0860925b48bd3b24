"""Where a command's words go: results to stdout, progress and hints to stderr, colour only to a person.

Not here: what the words are (`lines.py`, the commands).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

from weft.cli.lines import compact

Colour = Literal["red", "green", "yellow", "cyan", "dim", "bold"]

_CODES: dict[Colour, str] = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "dim": "2",
    "bold": "1",
}

STATUS_COLOURS: dict[str, Colour] = {
    "queued": "dim",
    "running": "yellow",
    "waiting": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
}


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def wants_colour(stream: TextIO | None) -> bool:
    """A terminal that can, and nobody said no (`NO_COLOR`, whatever its value unless empty)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: Colour | None, stream: TextIO | None) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colour and wants_colour(stream) else text


def prepare_streams() -> None:
    """A character that the terminal's encoding lacks is written out instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class Output:
    """One command's two streams. A reader that has gone (`| head`) is not an error: `gone` says so, and is quiet.

    With `json`, stdout holds JSON lines and nothing else: what anybody prints besides goes to stderr.
    """

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.gone = False
        self._stdout = sys.stdout
        if json:
            sys.stdout = sys.stderr
            # Whatever the terminal's encoding, JSON is UTF-8, and `\xe9` would be none.
            if self._stdout is not None and hasattr(self._stdout, "reconfigure"):
                self._stdout.reconfigure(encoding="utf-8")

    def value(self, value: Mapping[str, Any]) -> None:
        """One JSON value, one line, on stdout."""
        self.line(compact(value))

    def line(self, text: str, colour: Colour | None = None) -> None:
        """One line on stdout."""
        if self._stdout is None or self.gone:
            return
        try:
            self._stdout.write(paint(text, colour, self._stdout) + "\n")
        except BrokenPipeError:
            self._reader_left()

    def flush(self) -> None:
        if self._stdout is None or self.gone:
            return
        try:
            self._stdout.flush()
        except BrokenPipeError:
            self._reader_left()

    def note(self, text: str, colour: Colour | None = None) -> None:
        """Progress or a hint, on stderr."""
        note(text, colour)

    def _reader_left(self) -> None:
        self.gone = True
        silence(self._stdout)


def note(text: str, colour: Colour | None = None) -> None:
    """One line on stderr."""
    if sys.stderr is None:
        return
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(paint(text, colour, sys.stderr) + "\n")
        sys.stderr.flush()


def silence(stream: TextIO | None) -> None:
    """Nobody reads this any more: what is still in its buffer must not fail when the process ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]  # None has none, which is suppressed
        os.close(nowhere)
