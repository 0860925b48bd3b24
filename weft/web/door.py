"""What the HTTP door holds while it is open: the store, the projects it starts programs of, who follows which run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast
from uuid import UUID

import anyio
from starlette.requests import Request

from weft.service.opening import Store
from weft.service.projects import LoadedProject
from weft.web.late import Late
from weft.web.refusals import Refused

MOST_FOLLOWERS: Final = 100
"""Requests that may wait for events at once; each looks at the store again and again."""


@dataclass(slots=True)
class Door:
    """`served` are the projects whose programs can be started here. `local`: bound to a loopback address, where nobody
    needs a token. `stopping` is set when open answers have to end."""

    store: Store
    served: Sequence[LoadedProject]
    local: bool
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    late: Late = field(init=False)
    followers: int = 0
    _followed: dict[UUID, set[asyncio.Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.late = Late(self.store)

    def saved(self, run: UUID) -> None:
        """Events of the run were committed in this process: who follows it looks at once."""
        for each in self._followed.get(run, ()):
            each.set()

    def stop(self) -> None:
        self.stopping.set()
        for waiting in self._followed.values():
            for each in waiting:
                each.set()

    def check_room(self) -> None:
        """
        Raises:
            Refused: 503, so many follow runs already that nobody else may.
        """
        if self.followers >= MOST_FOLLOWERS:
            raise Refused(503, "busy", "too many requests wait for events", None, {"retry-after": "5"})

    @contextmanager
    def following(self, run: UUID) -> Iterator[News]:
        """Follow a run. Raises as `check_room`."""
        self.check_room()
        news = asyncio.Event()
        self.followers += 1
        self._followed.setdefault(run, set()).add(news)
        try:
            yield News(news)
        finally:
            self.followers -= 1
            self._followed[run].discard(news)
            if not self._followed[run]:
                del self._followed[run]


@dataclass(frozen=True, slots=True)
class News:
    """Tells one follower that there may be something new."""

    event: asyncio.Event

    async def wait(self, seconds: float) -> None:
        """Until something was committed in this process, or so long."""
        with anyio.move_on_after(seconds):
            await self.event.wait()
        self.event.clear()


def door_of(request: Request) -> Door:
    return cast(Door, request.scope["weft.door"])
