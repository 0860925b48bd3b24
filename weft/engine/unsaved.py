"""What a run has produced since its last write, and what waits for that to be saved."""

from __future__ import annotations

import asyncio

from weft.flow.events import Event, Key
from weft.store.runs.waits import NewWait


class Unsaved:
    """`events` with their texts (`encoded`), the `waits` to be registered with them, the firings whose bodies start
    once they are saved, and who wants to be told."""

    __slots__ = ("encoded", "events", "flushes", "starting", "waits")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.encoded: list[str] = []
        self.waits: list[NewWait] = []
        self.starting: list[Key] = []
        self.flushes: list[asyncio.Future[None]] = []

    def __bool__(self) -> bool:
        return bool(self.encoded or self.starting or self.flushes)

    def told(self) -> None:
        """It is saved."""
        for done in self.flushes:
            if not done.done():
                done.set_result(None)

    def forgotten(self) -> None:
        """It never will be."""
        for done in self.flushes:
            done.cancel()
