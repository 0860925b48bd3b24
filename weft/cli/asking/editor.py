"""One line on the terminal that a person edits, while the event loop goes on.

The line may begin with a text, can be hidden while something else is printed, and is withdrawn by cancelling whoever
reads it. A long one scrolls sideways, so that it is always one row. Not here: what is asked (`questions.py`).
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import termios
import tty
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

ESCAPE_PAUSE = 0.05
"""Seconds within which the rest of a key's sequence follows its first byte."""

_PROMPT = "> "


class EndOfInput(Exception):
    """Ctrl-D, or the terminal has gone. `text` is what stood on the line."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Editor:
    """Made by `editing`. Reads lines; `hide` and `draw` make room for what others print."""

    def __init__(self) -> None:
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before = ""
        self._after = ""
        self._reading = False

    def feed(self) -> None:
        """Take what was typed."""
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._keys.put_nowait("\x04")
        for char in self._decoder.decode(data):
            self._keys.put_nowait(char)

    async def line(self, text: str = "") -> str:
        """A line, which `text` stands on already. Raises EndOfInput."""
        self._before, self._after, self._reading = text, "", True
        self.draw()
        try:
            while True:
                key = await self._key()
                if key in ("\r", "\n"):
                    return self._before + self._after
                if key == "\x04" and not self._after:
                    raise EndOfInput(self._before)
                self._edit(key)
                self.draw()
        finally:
            self._after = ""
            self.draw()
            self._reading = False
            _write("\r\n")

    async def _key(self) -> str:
        """One key: a character, or the whole sequence of a special key."""
        key = await self._keys.get()
        if key != "\x1b":
            return key
        with anyio.move_on_after(ESCAPE_PAUSE):
            key += await self._keys.get()
            while len(key) > 1 and key[1] in "[O" and (len(key) == 2 or not "@" <= key[-1] <= "~"):
                key += await self._keys.get()
        return key

    def _edit(self, key: str) -> None:
        before, after = self._before, self._after
        match key:
            case "\x7f" | "\b":
                before = before[:-1]
            case "\x1b[3~" | "\x04":
                after = after[1:]
            case "\x1b[D" | "\x1bOD" | "\x02":
                before, after = before[:-1], before[-1:] + after
            case "\x1b[C" | "\x1bOC" | "\x06":
                before, after = before + after[:1], after[1:]
            case "\x1b[H" | "\x1bOH" | "\x1b[1~" | "\x01":
                before, after = "", before + after
            case "\x1b[F" | "\x1bOF" | "\x1b[4~" | "\x05":
                before, after = before + after, ""
            case "\x15":
                before = ""
            case "\x0b":
                after = ""
            case "\x17":
                before = before.rstrip().rpartition(" ")[0] + " " * (" " in before.rstrip())
            case _ if len(key) == 1 and (key.isprintable() or key == "\t" or unicodedata.combining(key)):
                before += key
        self._before, self._after = before, after

    def draw(self) -> None:
        """Show the line, and the cursor where it is."""
        if not self._reading:
            return
        room = max(10, _columns() - len(_PROMPT) - 2)
        left = _fitting(self._before[::-1], room)[::-1]
        right = _fitting(self._after, room - _width(left))
        back = _width(right)
        _write(f"\r\x1b[K{_PROMPT}{left}{right}" + (f"\x1b[{back}D" if back else ""))

    def hide(self) -> None:
        if self._reading:
            _write("\r\x1b[K")


@contextmanager
def editing() -> Iterator[Editor]:
    """Take the keys of the terminal, one by one and not shown by it, until the block is left; Ctrl-C stays a signal."""
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    editor = Editor()
    tty.setcbreak(descriptor, termios.TCSADRAIN)
    loop.add_reader(descriptor, editor.feed)
    try:
        yield editor
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _fitting(text: str, room: int) -> str:
    """As much of the text's beginning as has room, in characters that take the room they seem to."""
    shown = ""
    for char in text:
        char = char if char.isprintable() or unicodedata.combining(char) else "·"
        if _width(shown) + _width(char) > room:
            break
        shown += char
    return shown


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
