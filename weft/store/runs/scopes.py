"""Ending: the one path by which a run ends from outside, with everything that hangs below it.

A stop, a deadline and a parent's end are callers of the same function; none of them needs a worker to be
alive. Who is reached by a stop is `stops.py`; many trees at once, in chunks, is `endings.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from weft.errors import FenceLost
from weft.flow.events import (
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    NodeCancelled,
    encode,
    to_json,
)
from weft.store.pool import Connection
from weft.store.runs import journal
from weft.store.runs.journal import Write
from weft.store.sql import load

_SQL = load(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends. `reason` is for people, `cause` the same for programs; a failed run's error is its reason."""

    status: Literal["completed", "failed", "cancelled"]
    reason: str
    cause: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that was ended, and the worker that drove it and must hear of it."""

    run: UUID
    worker: UUID | None
    project: int


async def end_trees(conn: Connection, project: int, roots: Sequence[UUID], ending: Ending) -> list[Ended]:
    """Ends the scopes given and all that is below them, in the caller's transaction.

    What has ended already stays as it is, with its first reason; live ones below it are ended all the same.
    The roots end with the status given, and what is below them is cancelled. Returns what this call has
    ended.
    """
    root_of = await _lock_trees(conn, project, roots)
    return await _end_locked(conn, project, root_of, ending)


async def end_owned(conn: Connection, worker: UUID, write: Write) -> list[Ended]:
    """A run's own last write where it may have children, in the caller's transaction: they are cancelled with
    it.

    Returns what was ended below it. Raises `FenceLost` when the worker no longer owns the run; roll back
    then.
    """
    root_of = await _lock_trees(conn, write.project, [write.run])
    root_of.pop(write.run, None)
    above = Ending("cancelled", f"run {write.run} has {write.ends}", {"kind": "parent", "by": str(write.run)})
    ended = await _end_locked(conn, write.project, root_of, above)
    if not await journal.append_last(conn, worker, write):
        raise FenceLost(run=str(write.run))
    return ended


async def _lock_trees(conn: Connection, project: int, roots: Sequence[UUID]) -> dict[UUID, UUID]:
    """Locks level by level, from the top. Returns each live scope with the root that it is ended by."""
    waiting: dict[int, list[UUID]] = {}
    for row in await conn.fetch(_SQL.depths, project, list(roots)):
        waiting.setdefault(row["depth"], []).append(row["id"])
    root_of: dict[UUID, UUID] = {}
    live: dict[UUID, UUID] = {}
    above: list[UUID] = []
    depth = min(waiting, default=0)
    while waiting or above:
        if not above:
            depth = min(waiting)
        level = waiting.pop(depth, [])
        rows = await conn.fetch(_SQL.lock_level, project, level, above)
        for row in rows:
            root_of[row["id"]] = root = root_of.get(row["parent"], row["id"])
            if row["live"]:
                live[row["id"]] = root
        above = [row["id"] for row in rows if row["has_children"]]
        depth += 1
    return live


async def _end_locked(conn: Connection, project: int, root_of: Mapping[UUID, UUID], ending: Ending) -> list[Ended]:
    """Ends the runs of scopes that are locked and live."""
    if not root_of:
        return []
    rows = await conn.fetch(_SQL.lock_runs, project, list(root_of))
    ends = _Ends(ending)
    parts = [ends.of(row["id"], root_of[row["id"]], row["open_firings"]) for row in rows]
    await conn.execute(
        _SQL.end,
        project,
        [row["id"] for row in rows],
        [root_of[row["id"]] for row in rows],
        [part.status for part in parts],
        [part.reason for part in parts],
        [part.cause for part in parts],
        [part.error for part in parts],
        [len(part.events) for part in parts],
    )
    await journal.note(
        conn,
        project,
        [(row["id"], row["next_seq"], part.events) for row, part in zip(rows, parts, strict=True)],
    )
    ended = [Ended(row["id"], row["worker"], project) for row in rows]
    owned = [each for each in ended if each.worker is not None]
    if owned:
        await conn.execute(_SQL.tell, project, [each.run for each in owned], [each.worker for each in owned])
    return ended


@dataclass(frozen=True, slots=True)
class _End:
    """One run's end, as its row and its last events say it."""

    status: str
    reason: str | None
    cause: str | None
    error: str | None
    events: list[str]


class _Ends:
    """Makes each run's end; runs without open firings and of one root share it."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self._bare: dict[UUID | None, _End] = {}

    def of(self, run: UUID, root: UUID, open_firings: str) -> _End:
        below = None if run == root else root
        bare = self._bare.get(below)
        if bare is None:
            bare = self._bare[below] = self._make(below)
        if open_firings == "[]":
            return bare
        reason = bare.reason or self._ending.reason
        cause = dict(self._ending.cause)
        closed = [
            encode(NodeCancelled(node, tuple(frames), reason, cause)) for node, *frames in json.loads(open_firings)
        ]
        return _End(bare.status, bare.reason, bare.cause, bare.error, closed + bare.events)

    def _make(self, below: UUID | None) -> _End:
        ending, cause = self._ending, dict(self._ending.cause)
        if below is not None or ending.status == "cancelled":
            reason = ending.reason if below is None else f"Ended with run {below}: {ending.reason}"
            last = encode(ExecutionCancelled(reason, cause))
            return _End("cancelled", reason, to_json(cause), None, [last])
        if ending.status == "failed":
            last = encode(ExecutionFailed(ending.reason))
            return _End("failed", None, to_json(cause), ending.reason, [last])
        return _End("completed", None, None, None, [encode(ExecutionCompleted())])


async def due_deadlines(conn: Connection, limit: int) -> list[tuple[int, UUID]]:
    """Project and run of live scopes whose deadline has passed, the longest overdue first.

    Nothing is locked: `end_trees` takes the locks in their order and finds out what has ended meanwhile.
    """
    return [(row["project"], row["run"]) for row in await conn.fetch(_SQL.due_deadlines, limit)]


async def next_due(conn: Connection, projects: Sequence[int] | None = None) -> timedelta | None:
    """How long until the next deadline, or the next queued stop of these projects (None: of all), by the store's
    clock; zero or less when it is due, None for never."""
    left: timedelta | None = await conn.fetchval(_SQL.next_due, None if projects is None else list(projects))
    return left
