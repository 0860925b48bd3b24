"""Stops by tag: asked by a run and queued, then carried out by whoever takes them; and a person's stop of a
tag.

Whom a stop reaches is decided here; the ending itself is `endings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from weft.store.pool import Connection, Database
from weft.store.runs import fencing, tags
from weft.store.runs.endings import CHUNK, Report, end_chunk
from weft.store.runs.runs import Fence
from weft.store.runs.scopes import Ended, Ending
from weft.store.sql import load

_SQL = load(__name__)

KEPT: Final = timedelta(seconds=5)
"""How long a stop that was taken belongs to its taker before it comes due again."""

FIRST_RETRY: Final = timedelta(seconds=1)
LAST_RETRY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """A queued stop. One that reaches its asker never returns to the body: the firing waits for its own end."""

    id: int
    reaches_self: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop to be carried out. `run` asked it; `attempts` counts this one."""

    project: int
    id: int
    run: UUID
    tag: str
    include: bool
    reaches_self: bool
    cutoff: int | None
    attempts: int

    @property
    def spared(self) -> UUID | None:
        """The asker, unless the stop was to reach it when it was asked."""
        return None if self.reaches_self else self.run

    @property
    def ending(self) -> Ending:
        return Ending(
            "cancelled",
            f"Stopped by execution {self.run} (tag {self.tag})",
            {"kind": "execution", "by": str(self.run), "tag": self.tag},
        )


async def ask(
    conn: Connection, fence: Fence, node: str, frames: str, call: int, asks: Sequence[tuple[str, bool]]
) -> list[Asked]:
    """Queues a stop for each (tag, whether the asker is included), in the caller's transaction.

    `frames` is the JSON text of the firing's frames. The same ask again (a body that runs again from the top)
    is the stop of the first time, carried out or not. Raises `RunEnded` and `FenceLost`, and then nothing may
    be committed.
    """
    key = (fence.project, fence.run, node, frames, call)
    names = [tag for tag, _ in asks]
    await tags.lock(conn, fence.project, names)
    await fencing.hold(conn, fence)
    await conn.execute(_SQL.add, *key, names, [include for _, include in asks])
    return [Asked(row["id"], row["reaches_self"]) for row in await conn.fetch(_SQL.asked, *key, names)]


async def take_due(conn: Connection, projects: Sequence[int] | None, limit: int) -> list[Stop]:
    """Takes due stops of these projects (None: of all) for `KEPT`, the longest overdue first."""
    rows = await conn.fetch(_SQL.take_due, None if projects is None else list(projects), limit, KEPT)
    return [Stop(*row) for row in rows]


async def targets(conn: Connection, stop: Stop, limit: int, after: int = 0) -> list[tuple[UUID, int]]:
    """The live runs that a bounded stop reaches, with their numbers, the longest tagged first, beyond a number."""
    rows = await conn.fetch(_SQL.targets, stop.project, stop.tag, stop.cutoff, stop.spared, after, limit)
    return [(row["run"], row["number"]) for row in rows]


async def carry_out(db: Database, stop: Stop) -> list[Ended]:
    """Ends what the stop reaches and returns what this call has ended, so that the owners can be told.

    A target that cannot be ended is logged, and the stop comes due again. Raises `StoreUnreachable`; the stop
    is then still queued. May be repeated, and done by two processes at once.
    """
    async with db.connection() as conn:
        cutoff = stop.cutoff or await conn.fetchval(_SQL.bound, stop.project, stop.id)
    report = await _end_below(db, stop.project, stop.tag, cutoff, stop.spared, stop.ending)
    async with db.connection() as conn:
        if await conn.execute(_SQL.finish, stop.project, stop.id, stop.spared) == "UPDATE 0":
            await conn.execute(_SQL.postpone, stop.project, stop.id, _pause(stop.attempts))
    return report.ended


def _pause(attempts: int) -> timedelta:
    """Doubles with each attempt, up to a limit."""
    return min(FIRST_RETRY * float(2 ** min(attempts - 1, 16)), LAST_RETRY)


async def end_tagged(db: Database, project: int, tag: str, reason: str, cause: Mapping[str, Any]) -> Report:
    """A person's stop: cancels the live runs that carry the tag at this moment."""
    async with db.connection() as conn:
        cutoff = await conn.fetchval(_SQL.next_number, project, tag)
    return await _end_below(db, project, tag, cutoff, None, Ending("cancelled", reason, cause))


async def count_tagged(conn: Connection, project: int, tag: str) -> int:
    """How many live runs carry the tag."""
    return int(await conn.fetchval(_SQL.count_tagged, project, tag))


async def _end_below(db: Database, project: int, tag: str, cutoff: int, spared: UUID | None, ending: Ending) -> Report:
    report = Report()
    after = 0
    while True:
        async with db.connection() as conn:
            rows = await conn.fetch(_SQL.targets, project, tag, cutoff, spared, after, CHUNK)
        if rows:
            await end_chunk(db, project, [row["run"] for row in rows], ending, report)
            after = rows[-1]["number"]
        if len(rows) < CHUNK:
            return report
