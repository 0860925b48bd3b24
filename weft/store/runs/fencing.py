"""The fence for writes that stand outside the group commit: lock the run, and see that it is still the caller's."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import FenceLost, RunEnded
from weft.store.pool import Connection
from weft.store.runs import journal
from weft.store.runs.runs import Fence
from weft.store.sql import load

_SQL = load(__name__)


async def hold(conn: Connection, fence: Fence) -> int:
    """Locks the run until the caller's transaction ends and returns the number of its next event.

    Raises `RunEnded` when it has ended, `FenceLost` when it is no longer the worker's at that lease.
    """
    row = await conn.fetchrow(_SQL.hold, fence.project, fence.run)
    run = str(fence.run)
    if row is not None and row["ended_at"] is not None:
        raise RunEnded(f"run {run} has already ended", run=run)
    if row is None or row["worker"] != fence.worker or row["lease"] != fence.lease:
        raise FenceLost(f"this worker no longer owns run {run}", run=run)
    return int(row["next_seq"])


async def write_event(conn: Connection, fence: Fence, number: int, events: Sequence[str]) -> None:
    """Appends events to a run that the caller holds, from the number that `hold` returned."""
    await conn.execute(_SQL.advance, fence.project, fence.run, len(events))
    await journal.note(conn, fence.project, [(fence.run, number, events)])
