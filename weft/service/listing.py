"""What people read: pages of runs, a run's events, who could run what is queued. Reads only.

Runs are found by id in `ids.py`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from weft.errors import NotFound
from weft.store.pool import Database
from weft.store.runs import listing, workers
from weft.store.runs.listing import ProjectRow, RunKey, RunRow, Wanted

PAGE = 500
"""Packed journal rows a read."""

STATUSES = ("queued", "running", "waiting", "completed", "failed", "cancelled")

__all__ = ["STATUSES", "Cursor", "ProjectRow", "RunKey", "RunRow", "StoredEvent"]


class StoredEvent(NamedTuple):
    """An event as stored: its number in the run (None: it came after the end), when it was committed, its JSON.
    `late` numbers what came after the end."""

    seq: int | None
    at: datetime
    event: dict[str, Any]
    late: int | None = None


async def projects_named(database: Database, name: str | None) -> list[ProjectRow]:
    """All projects of the database, or those of a key or name.

    Raises:
        NotFound: there is none of that key or name.
    """
    async with database.connection() as connection:
        everything = await listing.all_projects(connection)
        if name is None:
            return everything
        found = await listing.projects_called(connection, name)
    if not found:
        known = ", ".join(sorted({project.name for project in everything})) or "none"
        raise NotFound(f"this database has no project {name!r}", hint=f"It has: {known}.")
    return found


async def executions(
    database: Database,
    *,
    project: str | None = None,
    among: Sequence[ProjectRow] | None = None,
    statuses: Sequence[str] = (),
    tags: Sequence[str] = (),
    since: datetime | None = None,
    node: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[RunRow]:
    """Runs, newest first, of a project (its key or name), of those in `among`, or of all; a run carries every one of
    `tags`, is of one of `statuses`.

    Raises:
        NotFound: there is no such project.
    """
    projects = await projects_named(database, project) if among is None else among
    wanted = Wanted(tuple(each.id for each in projects), tuple(statuses), tuple(tags), since, node, limit, offset)
    async with database.connection() as connection:
        return await listing.page(connection, wanted)


async def newest_run(database: Database, project: str) -> RunRow:
    """The newest run of a project, by its key.

    Raises:
        NotFound: it has none.
    """
    async with database.connection() as connection:
        found = [each.id for each in await listing.projects_called(connection, project) if each.key == project]
        rows = await listing.page(connection, Wanted(tuple(found), limit=1)) if found else []
    if not rows:
        raise NotFound("this project has no run yet", hint="Start one with: weft run FILE")
    return rows[0]


async def refreshed(database: Database, run: RunRow) -> RunRow:
    """The run as it is now.

    Raises:
        NotFound: it has been deleted meanwhile.
    """
    async with database.connection() as connection:
        rows = await listing.rows(connection, [RunKey(run.project, run.run)])
    if not rows:
        raise NotFound(f"run {run.run} is gone: it was deleted")
    return rows[0]


class Cursor:
    """Reads one run's events in order, each once, going on where it stopped. What came after the end comes before it:
    the terminal event is held back until everything else was given out.
    """

    def __init__(self, database: Database, run: RunRow | RunKey, after: int = 0, late: int = 0) -> None:
        """Begins behind the event number `after`, and of what came after the end behind the number `late`."""
        self._database = database
        self._key = RunKey(run.project, run.run)
        self._after = self._given = after
        self._late = late
        self._terminal: StoredEvent | None = None
        self.done = False
        """The terminal event has been given out."""

    async def news(self) -> AsyncIterator[StoredEvent]:
        """Everything committed since the last call."""
        while not self.done and (page := await self._page()):
            for each in page:
                yield each
        if self._terminal is not None and not self.done:
            for each in await self._aftermath():
                yield each
            self.done = True
            yield self._terminal

    async def _page(self) -> list[StoredEvent]:
        async with self._database.connection() as connection:
            if self._given and self._given == self._after:
                # Events are packed, and who goes on may have seen only the first of a row.
                self._after = await listing.before_row_of(connection, self._key, self._given)
            rows = await listing.journal_page(connection, self._key, self._after, PAGE)
        found: list[StoredEvent] = []
        for row in rows:
            events = enumerate(json.loads(row.events), start=row.first)
            found += [StoredEvent(seq, row.at, event) for seq, event in events if seq > self._given]
        self._after = max(self._after, self._given)
        self._given = 0
        if found:
            last = found[-1]
            assert last.seq is not None
            self._after = last.seq
            if last.event["kind"] in TERMINAL:
                self._terminal = found.pop()
        return found

    async def _aftermath(self) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        async with self._database.connection() as connection:
            while rows := await listing.aftermath_page(connection, self._key, self._late):
                self._late = rows[-1].number
                found += [StoredEvent(None, row.at, json.loads(row.event), row.number) for row in rows]
        return found


TERMINAL = frozenset({"execution_completed", "execution_failed", "execution_cancelled"})


async def workers_of(database: Database, project: int) -> list[int]:
    """The numbers of the workers that serve a project: their lease holds, and nothing says that they died."""
    async with database.connection() as connection:
        alive = await workers.alive(connection, project)
        lost = set(await workers.without_death_lock(connection)) if alive else set()
    return [worker.number for worker in alive if worker.id not in lost]


async def worker_number(database: Database, worker: UUID) -> int | None:
    """The number by which people know a worker."""
    async with database.connection() as connection:
        return await workers.number(connection, worker)
