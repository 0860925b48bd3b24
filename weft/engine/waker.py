"""What becomes due without anybody asking: queued stops and deadlines.

Any worker may carry out what is due in its projects; a second one that tries finds nothing left to do. It sleeps to the
nearest due time, a second at most, and looks at once when told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import anyio

from weft.engine.retrying import retrying, retrying_whole
from weft.log import get_logger
from weft.store.pool import Connection, Database
from weft.store.runs import scopes, stops
from weft.store.runs.scopes import Ended, Ending

LOOK_AGAIN = 1.0
SHORTEST_PAUSE = 0.02
"""Seconds between two looks: what is still due after one could not be done, and may not be for long."""

DUE_AT_ONCE = 200

log = get_logger("weft.waker")


class Waker:
    """`told(ended)` is called with what was ended, so that the owners hear it."""

    def __init__(
        self,
        database: Database,
        projects: Sequence[int],
        told: Callable[[Sequence[Ended]], None],
    ) -> None:
        self._database = database
        self._projects = list(projects)
        self._told = told
        self._wake = asyncio.Event()

    def look(self) -> None:
        """Something may be due now."""
        self._wake.set()

    async def run(self) -> None:
        """Carry out what is due until cancelled."""
        while True:
            self._wake.clear()
            await self._carry_out_stops()
            await self._end_overdue()
            due_in = await retrying(self._database, partial(scopes.next_due, projects=self._projects))
            pause = LOOK_AGAIN if due_in is None else min(max(due_in.total_seconds(), SHORTEST_PAUSE), LOOK_AGAIN)
            with anyio.move_on_after(pause):
                await self._wake.wait()

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


async def _end_at_deadline(connection: Connection, *, project: int, run: UUID) -> list[Ended]:
    async with connection.transaction():
        ending = Ending("cancelled", "Deadline reached", {"kind": "deadline"})
        return await scopes.end_trees(connection, project, [run], ending)
