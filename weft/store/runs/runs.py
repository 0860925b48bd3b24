"""Runs as rows: starting, claiming, giving back, and what one's state is.

What a run does meanwhile is its journal (`journal.py`); how it is ended from outside is `scopes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from weft.errors import NotFound, RunEnded
from weft.store.pool import Connection
from weft.store.runs.packing import pack
from weft.store.sql import load

_SQL = load(__name__)

SUSPECT: Final = 3
"""From so many deaths on a run is claimed apart from others, so that it can be told whether it is the one that
kills."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The right to write to a run: whoever names an older worker or lease is refused."""

    project: int
    run: UUID
    worker: UUID
    lease: int


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be. `events` are encoded events, the first of its journal; `deadline` counts from its start."""

    program: str
    entry: str
    events: Sequence[str]
    open_firings: str = "[]"
    deadline: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is ours from now on, under this lease number; `program` is its program's hash. `deaths` is how many
    workers died one after another while they drove it, without its having come any further."""

    project: int
    run: UUID
    lease: int
    program: str
    next_seq: int
    deaths: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """`status` is queued, running, waiting, completed, failed or cancelled; `cause` is JSON text."""

    status: str
    worker: UUID | None
    lease: int
    next_seq: int
    started_at: datetime
    ended_at: datetime | None
    reason: str | None
    cause: str | None
    error: str | None
    program: str
    entry: str


@dataclass(frozen=True, slots=True)
class _Above:
    """The scope that new ones hang under."""

    parent: UUID | None = None
    depth: int = 0
    deadline: datetime | None = None


_NOTHING = _Above()


async def start(conn: Connection, project: int, worker: UUID | None, new: Sequence[NewRun]) -> list[UUID]:
    """Starts runs in one statement that commits by itself, and returns their ids in the order given.

    With a worker they are born claimed by it, at lease 1 and running; without one, or where that worker has
    been given up as dead, they are queued.
    """
    return await _start(conn, project, worker, new, _NOTHING)


async def start_below(
    conn: Connection, project: int, worker: UUID | None, parent: UUID, new: Sequence[NewRun]
) -> list[UUID]:
    """Starts runs under a scope, in the caller's transaction: they end when it does, and not later than its
    deadline.

    Raises `NotFound` where there is no such scope, `RunEnded` where it has ended.
    """
    above = await conn.fetchrow(_SQL.lock_above, project, parent)
    if above is None:
        raise NotFound(f"there is no run {parent}")
    if above["ended_at"] is not None:
        raise RunEnded(f"run {parent} has already ended", run=str(parent))
    if not above["has_children"]:
        await conn.execute(_SQL.mark_above, project, parent)
    return await _start(conn, project, worker, new, _Above(parent, above["depth"] + 1, above["effective_deadline"]))


async def _start(
    conn: Connection, project: int, worker: UUID | None, new: Sequence[NewRun], above: _Above
) -> list[UUID]:
    rows = pack(run.events for run in new)
    started = await conn.fetch(
        _SQL.start,
        project,
        worker,
        above.parent,
        above.depth,
        above.deadline,
        [run.program for run in new],
        [run.entry for run in new],
        [len(run.events) for run in new],
        [run.open_firings for run in new],
        [run.deadline for run in new],
        rows.owner,
        rows.offset,
        rows.count,
        rows.events,
    )
    return [row["id"] for row in started]


async def claim(
    conn: Connection,
    worker: UUID,
    projects: Sequence[int],
    limit: int,
    only: Sequence[UUID] | None = None,
    *,
    suspects: bool = False,
) -> list[Claimed]:
    """Takes up to `limit` runs that nobody drives, oldest first within a project, the projects in a new order
    each time; of those in `only`, where it is given. A worker that was given up as dead gets none.

    `suspects`: only those that may kill who drives them, else only the others.
    """
    rows = await conn.fetch(
        _SQL.claim, worker, list(projects), limit, None if only is None else list(only), SUSPECT, suspects
    )
    return [Claimed(*row) for row in rows]


async def owned(conn: Connection, worker: UUID) -> list[Claimed]:
    """All that the worker owns by the store's word. After a lost connection that may be more than it knows
    of: a claim or a start whose answer never came. Reads the whole list of live runs, so it is not for every second."""
    return [Claimed(*row) for row in await conn.fetch(_SQL.owned, worker)]


async def release(conn: Connection, fences: Sequence[Fence]) -> None:
    """Gives runs back to be claimed by anybody. What is no longer owned is left alone."""
    await conn.execute(
        _SQL.release,
        [fence.project for fence in fences],
        [fence.run for fence in fences],
        [fence.worker for fence in fences],
        [fence.lease for fence in fences],
    )


async def open_firings(conn: Connection, project: int, run: UUID) -> str:
    """The firings that have started and not ended, as JSON text."""
    found: str | None = await conn.fetchval(_SQL.open_firings, project, run)
    return found or "[]"


async def status(conn: Connection, project: int, run: UUID) -> RunStatus | None:
    """What the store says of a run, or None where it has none of that id."""
    row = await conn.fetchrow(_SQL.status, project, run)
    return None if row is None else RunStatus(*row)
