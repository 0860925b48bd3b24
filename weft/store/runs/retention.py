"""Retention: ended runs are deleted with all their rows, some time after they ended.

A run is deleted when the whole tree that it is in has ended; one that is live, queued or parked never is. Each chunk
commits by itself, so that a clean-up can be stopped at any moment and holds nothing up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from weft.store.pool import Connection, Database
from weft.store.sql import load

_SQL = load(__name__)

CHUNK: Final = 500
"""Runs in one transaction."""

PAGE: Final = 5_000
"""Runs that are looked at together; most may be parked, and stay."""

_LOWEST: Final = UUID(int=0)


class Doomed(NamedTuple):
    """What a clean-up would delete of a project."""

    project: int
    runs: int
    events: int


async def count(conn: Connection, projects: Sequence[int], keep: timedelta) -> list[Doomed]:
    """What `delete` would delete now; a project of which nothing would go is left out."""
    ended_before, below = await conn.fetchrow(_SQL.bounds, keep)
    return [Doomed(*row) for row in await conn.fetch(_SQL.count, list(projects), ended_before, below)]


async def delete(db: Database, project: int, keep: timedelta) -> int:
    """Deletes the project's runs of trees that ended longer ago than `keep`, and returns how many it were; and
    programs that no run has any more.

    May be repeated, and done by two processes at once. Raises `StoreUnreachable`; what was deleted until then is gone.
    """
    async with db.connection() as conn:
        ended_before, below = await conn.fetchrow(_SQL.bounds, keep)
    deleted = 0
    after = _LOWEST
    while True:
        async with db.connection() as conn:
            page = await conn.fetch(_SQL.page, project, ended_before, below, after, PAGE)
        if not page:
            break
        for level in reversed(await _levels(db, project, [row["id"] for row in page if row["may_go"]])):
            for at in range(0, len(level), CHUNK):
                async with db.connection() as conn:
                    done = await conn.execute(_SQL.delete, project, level[at : at + CHUNK])
                deleted += int(done.removeprefix("DELETE "))
        after = page[-1]["id"]
    async with db.connection() as conn:
        await conn.execute(_SQL.forget_programs, project, keep)
        await conn.execute(_SQL.drop_periods)
    return deleted


async def make_periods(conn: Connection) -> None:
    """Makes the journal's next months ahead of their time."""
    await conn.execute(_SQL.make_periods)


async def _levels(db: Database, project: int, level: list[UUID]) -> list[list[UUID]]:
    """These runs, what is below them, what is below that, and so on."""
    levels: list[list[UUID]] = []
    while level:
        levels.append(level)
        async with db.connection() as conn:
            level = [row["id"] for row in await conn.fetch(_SQL.children, project, level)]
    return levels
