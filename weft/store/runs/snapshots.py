"""Snapshots: the folded state of a run with a long journal, so that a wake costs the same however old the run is.

A snapshot is what the journal says up to a number, and nothing more; without one the whole journal says the same.
What the state holds is the fold's business.
"""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Kept:
    """What a wake folds: the snapshot, and the rows that hold events after it, in order. The first row may begin with
    older events."""

    snapshot: Snapshot | None
    rows: list[JournalRow]


async def resume(conn: Connection, keys: Sequence[tuple[int, UUID]]) -> dict[UUID, Kept]:
    """What waking each of these runs (project, run) folds, in one statement; all of it is in memory then."""
    kept = {run: Kept(None, []) for _, run in keys}
    found = await conn.fetch(_SQL.resume, [project for project, _ in keys], [run for _, run in keys])
    for run, first, count, at, events in found:
        if count == 0:
            kept[run] = Kept(Snapshot(first, events), [])
        else:
            kept[run].rows.append(JournalRow(first, count, at, events))
    return kept
