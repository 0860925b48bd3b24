"""Whose worker died: its runs go back on the ready list.

Two proofs, each enough: the lease lapsed by the database's clock, or the death lock is gone on two looks in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from weft.engine.retrying import retrying
from weft.log import get_logger
from weft.store.pool import Database
from weft.store.runs import workers

log = get_logger("weft.sweeper")


async def sweep(
    database: Database, mine: UUID, seen_without_lock: set[UUID], freed: Callable[[int], None]
) -> set[UUID]:
    """One look. Returns the workers seen without their death lock, to be handed to the next look."""
    missing = await retrying(database, workers.without_death_lock)
    dead = [worker for worker in missing if worker in seen_without_lock and worker != mine]
    for project, run, worker in await retrying(database, lambda c: workers.release_dead(c, dead)):
        log.info("a run was left by a dead worker and is taken over", run=str(run), worker=str(worker))
        freed(project)
    return set(missing)
