"""What becomes due without anybody asking: queued stops, deadlines, waits, and runs that others wait for.

Any worker may carry out what is due in its projects; a second one that tries finds nothing left to do. It sleeps to the
nearest due time, a second at most, and looks at once when told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

import anyio

from weft.engine.retrying import retrying, retrying_whole
from weft.log import get_logger
from weft.store.pool import Connection, Database
from weft.store.runs import children, scopes, stops, waits
from weft.store.runs.scopes import Ended, Ending
from weft.store.runs.waits import Answered, Woken

LOOK_AGAIN = 1.0
STILL_DUE = 0.01
"""The pause when something is due although all was just carried out: somebody else holds it."""

DUE_AT_ONCE = 200

log = get_logger("weft.waker")


class Waker:
    """`told(ended)` is called with what was ended, `answered(waits)` with the waits that are over: the owners must
    hear of both."""

    def __init__(
        self,
        database: Database,
        projects: Sequence[int],
        told: Callable[[Sequence[Ended]], None],
        answered: Callable[[Sequence[Answered]], None],
    ) -> None:
        self._database = database
        self._projects = list(projects)
        self._told = told
        self._answered = answered
        self._wake = asyncio.Event()

    def look(self) -> None:
        """Something may be due now."""
        self._wake.set()

    async def run(self) -> None:
        """Carry out what is due until cancelled."""
        while True:
            self._wake.clear()
            due_in = await self._next_due()
            if due_in is not None and due_in <= timedelta(0):
                await self._carry_out_stops()
                await self._end_overdue()
                await self._end_waits(waits.take_due)
                await self._end_waits(children.take_ended)
                due_in = await self._next_due()
            with anyio.move_on_after(_pause(due_in)):
                await self._wake.wait()

    async def _next_due(self) -> timedelta | None:
        return await retrying(self._database, partial(scopes.next_due, projects=self._projects))

    async def _carry_out_stops(self) -> None:
        while taken := await retrying(
            self._database, lambda c: stops.take_due(c, self._projects, DUE_AT_ONCE)
        ):
            for stop in taken:
                try:
                    ended = await retrying_whole(partial(stops.carry_out, self._database, stop))
                except Exception:
                    # It stays queued and comes due again; the others need not wait for it.
                    log.exception("a stop could not be carried out", stop=stop.id)
                    continue
                self._told(ended)

    async def _end_overdue(self) -> None:
        while overdue := await retrying(self._database, partial(scopes.due_deadlines, limit=DUE_AT_ONCE)):
            for project, run in overdue:
                try:
                    ended = await retrying(
                        self._database, partial(_end_at_deadline, project=project, run=run)
                    )
                except Exception:
                    # It stays overdue and is looked at again; the others have had their turn by then.
                    log.exception("a deadline could not be carried out", run=str(run))
                    return
                self._told(ended)

    async def _end_waits(self, take: Callable[[Connection, int], Awaitable[Woken]]) -> None:
        while (woken := await retrying(self._database, lambda c: take(c, DUE_AT_ONCE))).answered:
            self._answered(woken.answered)


def _pause(due_in: timedelta | None) -> float:
    if due_in is None:
        return LOOK_AGAIN
    seconds = due_in.total_seconds()
    return min(seconds, LOOK_AGAIN) if seconds > 0 else STILL_DUE


async def _end_at_deadline(connection: Connection, *, project: int, run: UUID) -> list[Ended]:
    async with connection.transaction():
        ending = Ending("cancelled", "Deadline reached", {"kind": "deadline"})
        return await scopes.end_trees(connection, project, [run], ending)
