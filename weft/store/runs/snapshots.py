"""Snapshots: the folded state of a run with a long journal, so that a wake costs the same however old the run is.

A snapshot is what the journal says up to a number, and nothing more; without one the whole journal says the same.
What the state holds is the fold's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from weft.store.pool import Connection
from weft.store.runs.journal import JournalRow
from weft.store.runs.runs import Fence
from weft.store.sql import load

_SQL = load(__name__)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after event number `after`, as JSON text."""

    after: int
    state: str


async def put(conn: Connection, fence: Fence, snapshot: Snapshot) -> bool:
    """Keeps a snapshot in place of an older one. Only events that are saved may be in it. False: the run has ended,
    was claimed anew, or has one at least as new."""
    kept: str = await conn.execute(_SQL.put, fence.project, fence.run, fence.lease, snapshot.after, snapshot.state)
    return kept == "INSERT 0 1"


async def resume(conn: Connection, project: int, run: UUID) -> tuple[Snapshot | None, list[JournalRow]]:
    """What a wake folds: the snapshot, and the rows that hold events after it, in order. The first row may begin with
    older events. One statement."""
    rows = await conn.fetch(_SQL.resume, project, run)
    if rows and rows[0]["count"] == 0:
        return Snapshot(rows[0]["first"], rows[0]["events"]), [JournalRow(*row) for row in rows[1:]]
    return None, [JournalRow(*row) for row in rows]
