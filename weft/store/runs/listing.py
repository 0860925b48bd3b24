"""Reads for people: pages of runs, a run found by a piece of its id, its journal page by page.

Read-only, outside every lock. What the engine itself reads is in `journal.py` and `runs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from weft.store import sql
from weft.store.pool import Connection

_queries = sql.load(__name__)

LIVE_STATUSES = frozenset({"queued", "running"})
"""The statuses of runs that have a row among those with something to do."""


class ProjectRow(NamedTuple):
    """A project: the store's number for it, the id that names it everywhere, and what people call it."""

    id: int
    key: str
    name: str


class RunKey(NamedTuple):
    """What names a run in the store."""

    project: int
    run: UUID


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as listings show it. `tags` in the order claimed; `reason` of a cancelled, `error` of a failed run."""

    project: int
    run: UUID
    project_key: str
    project_name: str
    status: str
    started_at: datetime
    ended_at: datetime | None
    entry: str
    program: str
    reason: str | None
    error: str | None
    tags: tuple[str, ...]

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs a page holds: all of these at once. Empty or None asks nothing."""

    projects: tuple[int, ...]
    statuses: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    node: str | None = None
    limit: int = 50
    offset: int = 0


class PackedEvents(NamedTuple):
    """Events committed at once: the number of the first, when, and a JSON list as text."""

    first: int
    at: datetime
    events: str


class Late(NamedTuple):
    """What came after the end; `event` is JSON text."""

    number: int
    at: datetime
    event: str


async def all_projects(conn: Connection) -> list[ProjectRow]:
    return [ProjectRow(*row) for row in await conn.fetch(_queries.all_projects)]


async def projects_called(conn: Connection, name: str) -> list[ProjectRow]:
    """The projects of this key or name, the one of this key first."""
    return [ProjectRow(*row) for row in await conn.fetch(_queries.projects_called, name)]


async def page(conn: Connection, wanted: Wanted) -> list[RunRow]:
    """The runs that are wanted, newest first."""
    least = None if wanted.since is None else await conn.fetchval(_queries.least_id, wanted.since)
    arguments = (
        list(wanted.projects),
        list(wanted.statuses) or None,
        least,
        wanted.node,
        wanted.limit,
        wanted.offset,
    )
    if wanted.tags:
        found = await conn.fetch(_queries.page_tagged, *arguments, list(wanted.tags))
    elif wanted.statuses and {*LIVE_STATUSES, "waiting"}.issuperset(wanted.statuses):
        # Both kinds are few beside all that ever ran; each is asked for as much as the page could need of it.
        kinds = [_queries.page_live] if LIVE_STATUSES.intersection(wanted.statuses) else []
        kinds += [_queries.page_waiting] if "waiting" in wanted.statuses else []
        most = (*arguments[:4], wanted.limit + wanted.offset, 0)
        found = [row for kind in kinds for row in await conn.fetch(kind, *most)]
        found = sorted(found, key=lambda row: row["id"], reverse=True)[wanted.offset :][: wanted.limit]
    else:
        found = await conn.fetch(_queries.page, *arguments)
    return await rows(conn, [RunKey(*row) for row in found])


async def rows(conn: Connection, keys: Sequence[RunKey]) -> list[RunRow]:
    """These runs, in this order; one that is gone is left out."""
    if not keys:
        return []
    found = await conn.fetch(_queries.rows, [key.project for key in keys], [key.run for key in keys])
    return [RunRow(**{**row, "tags": tuple(row["tags"])}) for row in found]


async def between(conn: Connection, projects: Sequence[int], lowest: UUID, highest: UUID, limit: int) -> list[RunKey]:
    """Runs whose ids lie between two, both included; the newest `limit`."""
    return [RunKey(*row) for row in await conn.fetch(_queries.between, list(projects), lowest, highest, limit)]


async def ending_with(conn: Connection, projects: Sequence[int], ending: str, among: int, limit: int) -> list[RunKey]:
    """Runs whose ids end so, looked for among the newest `among` of each project; the newest `limit`."""
    found = await conn.fetch(_queries.ending_with, list(projects), ending, among, limit)
    return [RunKey(*row) for row in found]


async def whole_ids(conn: Connection, projects: Sequence[int], runs: Sequence[UUID]) -> list[RunKey]:
    """Those of these runs that exist."""
    return [RunKey(*row) for row in await conn.fetch(_queries.whole_ids, list(projects), list(runs))]


async def journal_page(conn: Connection, key: RunKey, after: int, limit: int) -> list[PackedEvents]:
    """Packed rows in order after an event number, at most `limit`."""
    return [PackedEvents(*row) for row in await conn.fetch(_queries.journal_page, *key, after, limit)]


async def before_row_of(conn: Connection, key: RunKey, seq: int) -> int:
    """After which event number to begin so that a page holds this event."""
    number: int = await conn.fetchval(_queries.before_row_of, *key, seq)
    return number


async def aftermath_page(conn: Connection, key: RunKey, after: int) -> list[Late]:
    """What came after the run's end, beyond the given number."""
    return [Late(*row) for row in await conn.fetch(_queries.aftermath_page, *key, after)]


async def live_tagged(conn: Connection, project: int, tag: str) -> list[UUID]:
    """Live runs that carry the tag, oldest tag first."""
    return [row["run"] for row in await conn.fetch(_queries.live_tagged, project, tag)]


async def about_database(conn: Connection) -> tuple[str, str, int]:
    """The server's version, the database's name and its size in bytes."""
    row = await conn.fetchrow(_queries.about_database)
    return row["version"], row["name"], row["bytes"]
