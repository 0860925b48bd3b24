"""What a person sees while a run goes on: lines for what happened, and on a terminal one line for what is happening.

Fed with saved events. What Debug shows goes to stdout, everything else to stderr; with `--json` all news are JSON lines
on stdout. Not here: where events come from.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from weft.cli.lines import cut, one_line
from weft.cli.output import STATUS_COLOURS, Colour, Output, is_terminal, paint
from weft.flow.events import Event, NodeSkipped, encode

SHOWN_LEVEL = "debug"
"""The level of the lines that the Debug node writes."""

NEWS = frozenset({"log_line", "cost_reported", "node_failed"})
"""The kinds that are told as they come; the rest only moves the status line."""

PARKING = frozenset({"node_suspended", "node_retry_scheduled"})
"""The kinds by which a firing begins to wait."""

_LEVELS: dict[str, Colour] = {"warning": "yellow", "error": "red"}
_NAMED_NODES = 3


def news_text(event: Mapping[str, Any]) -> tuple[str, Colour | None]:
    """A log line, a cost or a failure as text without its time, and its colour."""
    kind, node = event["kind"], one_line(str(event.get("node") or ""))
    if kind == "cost_reported":
        amount = event.get("amount")
        return f"cost {node}: {event['service']} {'unknown' if amount is None else amount}", "dim"
    if kind == "node_failed":
        error = event["error"]
        return f"failed {node}: {_lines(error['message'])}{_hint(error)}{_traceback(error)}", "red"
    level = str(event["level"])
    return f"{level} {node}: {_lines(event['text'])}", _LEVELS.get(level)


def _lines(text: str) -> str:
    """A text over several lines stays readable: each further line is set in by two."""
    return "\n  ".join(one_line(line) for line in text.split("\n"))


def _hint(error: Mapping[str, Any]) -> str:
    return f"\n  hint: {_lines(error['hint'])}" if error.get("hint") else ""


def _traceback(error: Mapping[str, Any]) -> str:
    text = str(error.get("traceback") or "").strip("\n")
    return f"\n  {_lines(text)}" if text else ""


class Line(Protocol):
    """A line that a person is typing on; what else is printed goes above it."""

    def hide(self) -> None: ...
    def draw(self) -> None: ...


class Progress:
    """The view of one run. `saved` takes its events in order; `tick` redraws the status line; `close` removes it.

    `typed` is the line that a person is asked on: while there is one, it stands in the place of the status line.
    `waits` is what the status line says that the run waits for, `has_waits` whether it ever waited for anything.
    """

    def __init__(self, out: Output) -> None:
        self.live = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb" and not out.json
        self._out = out
        self._running: dict[tuple[str, object], None] = {}
        self._done = self._skipped = self._failed = 0
        self._since = time.monotonic()
        self._drawn = False
        self.typed: Line | None = None
        self.waits: str | None = None
        self.has_waits = False

    def saved(self, run: UUID, events: Sequence[Event]) -> None:
        """These events of the run are durable now."""
        for event in events:
            self._count(event)
            if event.kind in NEWS:
                self._tell(run, json.loads(encode(event)))

    def _count(self, event: Event) -> None:
        firing = (str(getattr(event, "node", "")), getattr(event, "frames", ()))
        if event.kind in ("node_started", "node_resumed"):
            self._running[firing] = None
        elif event.kind in ("node_completed", "node_failed", "node_cancelled", *PARKING):
            self._running.pop(firing, None)
            self._done += event.kind == "node_completed"
            self._failed += event.kind == "node_failed"
            self.has_waits |= event.kind in PARKING
        elif isinstance(event, NodeSkipped):
            self._skipped += 1
            if self.live:
                self._say(f"skipped {event.node}: {event.reason}", "dim")

    def _tell(self, run: UUID, event: Mapping[str, Any]) -> None:
        if self._out.json:
            self._out.value({"run": str(run), **event})
            self._out.flush()
        elif event["kind"] == "log_line" and event["level"] == SHOWN_LEVEL:
            self._clear()
            self._out.line(event["text"])
            self._out.flush()
            self._draw_typed()
        else:
            self._say(*news_text(event))

    def _say(self, text: str, colour: Colour | None) -> None:
        self._clear()
        self._out.note(text, colour)
        self._draw_typed()

    def say(self, text: str) -> None:
        """A line on stderr, beside whatever stands there."""
        self._say(text, None)

    def tick(self) -> None:
        """Draw the status line again, on a terminal."""
        if not self.live or self.typed is not None:
            return
        names = [node for node, _ in self._running]
        running = ", ".join(names[:_NAMED_NODES])
        if len(names) > _NAMED_NODES:
            running += f" and {len(names) - _NAMED_NODES} more"
        counts = f"{self._done} done"
        if self._skipped:
            counts += f", {self._skipped} skipped"
        if self._failed:
            counts += f", {self._failed} failed"
        line = f"{time.monotonic() - self._since:.1f} s  {counts}" + (f"  running: {running}" if running else "")
        line += f"  {self.waits}" if self.waits else ""
        width = os.get_terminal_size(sys.stderr.fileno()).columns
        sys.stderr.write("\r\x1b[K" + paint(cut(line, max(10, width - 1)), "yellow", sys.stderr))
        sys.stderr.flush()
        self._drawn = True

    def _draw_typed(self) -> None:
        if self.typed is not None:
            self.typed.draw()

    def _clear(self) -> None:
        if self.typed is not None:
            self.typed.hide()
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False

    def close(self) -> None:
        self._clear()

    def tell_end(self, status: str, text: str | None) -> None:
        """The last words on stderr: how it ended and why."""
        self._clear()
        if status == "failed":
            self._out.note(f"{paint('error:', 'red', sys.stderr)} {text or 'the run failed'}")
        elif status == "cancelled":
            self._out.note(f"cancelled: {text or 'no reason is recorded'}", STATUS_COLOURS[status])
        elif self.live:
            took = time.monotonic() - self._since
            self._out.note(f"completed in {took:.2f} s", STATUS_COLOURS[status])
