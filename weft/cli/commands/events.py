"""`weft events`: a run's journal, one line an event, the last one last even when something came after the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from weft.cli.lines import Clock, event_line
from weft.cli.output import Colour, Output
from weft.cli.session import opened
from weft.errors import UsageError
from weft.flow.events import CLASSES
from weft.lang.diagnostics import nearest
from weft.service.ids import find_run
from weft.service.listing import Cursor, StoredEvent
from weft.service.shapes import event_json

LOOK_AGAIN = 0.1
"""Seconds between two looks for news."""

_COLOURS: dict[str, Colour] = {
    "node_failed": "red",
    "execution_failed": "red",
    "execution_completed": "green",
    "execution_cancelled": "yellow",
    "node_cancelled": "yellow",
    "node_skipped": "dim",
}


@dataclass(frozen=True, slots=True)
class View:
    nodes: list[str]
    kinds: list[str]
    full: bool
    follow: bool
    utc: bool
    local: bool

    def clock(self) -> Clock:
        if self.utc and self.local:
            raise UsageError("--utc and --local exclude each other")
        return "utc" if self.utc else "local" if self.local else "unix"

    def shows(self, stored: StoredEvent) -> bool:
        event = stored.event
        return (not self.nodes or event.get("node") in self.nodes) and (not self.kinds or event["kind"] in self.kinds)


async def events(piece: str, view: View, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    clock = view.clock()
    for kind in view.kinds:
        if kind not in CLASSES:
            close = nearest(kind, CLASSES)
            raise UsageError(
                f"--kind {kind!r} is no kind of event" + (f"; did you mean {close}?" if close else ""),
                hint=f"A kind is one of {', '.join(CLASSES)}.",
            )
    async with opened(database_url) as store:
        run = await find_run(store.database, piece)
        cursor = Cursor(store.database, run)
        while True:
            async for stored in cursor.news():
                if view.shows(stored):
                    _print(out, stored, view.full, clock)
            out.flush()
            if cursor.done or not view.follow or out.gone:
                return 0
            await asyncio.sleep(LOOK_AGAIN)


def _print(out: Output, stored: StoredEvent, full: bool, clock: Clock) -> None:
    if out.json:
        out.value(event_json(stored))
    else:
        line = event_line(stored.event, stored.at, full=full, clock=clock)
        out.line(line, _COLOURS.get(stored.event["kind"]))
