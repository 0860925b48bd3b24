"""The one look that a worker takes at the store each second, for whatever no notice told: it wakes who has something
to do.

Also whose worker died: its runs go back on the ready list. Two proofs, each enough: the lease lapsed by the
database's clock, or the death lock is gone on two looks some way apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final
from uuid import UUID

import anyio

from weft.engine.retrying import retrying
from weft.log import get_logger
from weft.store.pool import Database
from weft.store.runs import retention, workers
from weft.store.runs.workers import Look

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks: a notice may be lost, and the store never is."""

DOUBT: Final = 0.5
"""Seconds to the next look where a death lock is missing, and between the two looks that prove a death."""

DOUBT_AFTER_RESTART: Final = 1.0
"""The same while the server has not been up for long: all locks are free then, until the workers have come back to
it."""

RESTARTED_LATELY: Final = 15.0

TIDY_EVERY: Final = 3600.0

log = get_logger("weft.sweeper")


class Sweeper:
    """`own()` are the runs that may be claimed, None for any of the projects. `told`, `ready`, `suspects` and
    `freed` are called when there is something to hear, something to claim, something to claim that may be deadly,
    and a project of which something was freed."""

    def __init__(
        self,
        database: Database,
        mine: UUID,
        projects: Sequence[int],
        *,
        own: Callable[[], Collection[UUID] | None],
        told: Callable[[], None],
        ready: Callable[[], None],
        suspects: Callable[[], None],
        freed: Callable[[int], None],
    ) -> None:
        self._database = database
        self._mine = mine
        self._projects = list(projects)
        self._own = own
        self._told = told
        self._ready = ready
        self._suspects = suspects
        self._freed = freed
        self._missing: dict[UUID, float] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        tidied = -TIDY_EVERY
        # Whatever a look finds, it finds soon after a death: what was left behind while nobody looked is found now.
        await self._give_back([])
        while True:
            own = self._own()
            look = await retrying(
                self._database,
                partial(
                    workers.look,
                    worker=self._mine,
                    projects=self._projects,
                    only=None if own is None else list(own),
                ),
            )
            if look.told:
                self._told()
            if look.ready:
                self._ready()
            if look.suspects:
                self._suspects()
            if (dead := self._dead(look)) or look.leaves_runs:
                await self._give_back(dead)
            if anyio.current_time() - tidied >= TIDY_EVERY:
                tidied = anyio.current_time()
                await self._tidy()
            await asyncio.sleep(DOUBT if self._missing else LOOK_AGAIN)

    def _dead(self, look: Look) -> list[UUID]:
        """Those whose lock was missing before, too, long enough ago."""
        now = anyio.current_time()
        unlocked = [worker for worker in look.unlocked if worker != self._mine]
        self._missing = {worker: self._missing.get(worker, now) for worker in unlocked}
        lately = look.server_up.total_seconds() < RESTARTED_LATELY
        doubt = DOUBT_AFTER_RESTART if lately else DOUBT
        # What a look itself takes may make the way between two a little shorter.
        return [worker for worker, since in self._missing.items() if now - since >= doubt * 0.95]

    async def _give_back(self, dead: Sequence[UUID]) -> None:
        for project, run, worker in await retrying(self._database, partial(workers.release_dead, dead=dead)):
            log.info("a run was left by a dead worker and is taken over", run=str(run), worker=str(worker))
            self._freed(project)

    async def _tidy(self) -> None:
        """What need not be done soon; that it cannot be done now stops nothing."""
        try:
            await retrying(self._database, workers.forget)
            await retrying(self._database, retention.make_periods)
        except Exception:
            log.exception("the store could not be tidied up; it is tried again in an hour")
