"""What the store's tests are told with: a database with a project and a worker, runs in it, and forced races."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from weft.flow.events import (
    Event,
    ExecutionCompleted,
    ExecutionStarted,
    ExecutionTagged,
    LogLine,
    NodeCompleted,
    NodeStarted,
    encode,
)
from weft.store import projects
from weft.store.pool import Connection, Database
from weft.store.runs import journal, runs, scopes, stops, tags, workers
from weft.store.runs.journal import Write
from weft.store.runs.runs import Fence, NewRun
from weft.store.runs.scopes import Ended, Ending
from weft.store.runs.stops import Asked

HASH = "0" * 64
BY_USER = Ending("cancelled", "Cancelled by user", {"kind": "user"})
LEASE = timedelta(seconds=60)


class World:
    """`db` has a pool of one connection, so that a call that held one while it asked for another would hang."""

    def __init__(self, db: Database, project: int, worker: UUID) -> None:
        self.db = db
        self.project = project
        self.worker = worker

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[World]:
        db = await Database.open(url, pool_size=1, name="weft test")
        async with db.connection() as conn:
            project = await projects.ensure(conn, "demo", "Demo")
            worker = await workers.register(conn, host="here", pid=1, projects=[project], lease=LEASE)
        try:
            yield cls(db, project, worker)
        finally:
            await db.close()

    def new(self, *events: Event, open_firings: str = "[]", deadline: timedelta | None = None) -> NewRun:
        first = [ExecutionStarted(self.project, HASH, "main"), *events]
        return NewRun(HASH, "main", [encode(event) for event in first], open_firings, deadline)

    async def start(
        self,
        count: int = 1,
        *,
        queued: bool = False,
        nodes: Sequence[str] = (),
        deadline: timedelta | None = None,
        below: UUID | None = None,
        project: int | None = None,
    ) -> list[UUID]:
        """Runs of the world's worker, with nodes that have started and not ended."""
        new = self.new(
            *(NodeStarted(node) for node in nodes),
            open_firings=json.dumps([[node] for node in nodes]),
            deadline=deadline,
        )
        worker = None if queued else self.worker
        async with self.db.transaction() as conn:
            if below is not None:
                return await runs.start_below(conn, project or self.project, worker, below, [new] * count)
            return await runs.start(conn, project or self.project, worker, [new] * count)

    async def start_one(self, **how: Any) -> UUID:
        [run] = await self.start(1, **how)
        return run

    def fence(self, run: UUID, *, lease: int = 1, worker: UUID | None = None, project: int | None = None) -> Fence:
        return Fence(project or self.project, run, worker or self.worker, lease)

    def write(self, run: UUID, *events: Event, lease: int = 1, open_firings: str = "[]") -> Write:
        return Write(self.project, run, lease, [encode(event) for event in events], open_firings)

    def last_write(self, run: UUID, *events: Event) -> Write:
        whole = [encode(event) for event in (*events, ExecutionCompleted())]
        return Write(self.project, run, 1, whole, "[]", "completed")

    async def append(self, *writes: Write) -> dict[UUID, int]:
        """The number of the next event of each run that was written."""
        async with self.db.connection() as conn:
            saved = await journal.append(conn, self.worker, writes)
        return {run: each.next_seq for run, each in saved.items()}

    async def finish(self, run: UUID) -> int | None:
        async with self.db.connection() as conn:
            saved = await journal.append_alone(conn, self.worker, self.last_write(run))
        return None if saved is None else saved.next_seq

    async def tag(self, run: UUID, *names: str, project: int | None = None) -> bool:
        async with self.db.transaction() as conn:
            return await tag_in(conn, self.fence(run, project=project), *names)

    async def ask(
        self, run: UUID, *names: str, include: bool = False, call: int = 0, node: str = "stop"
    ) -> list[Asked]:
        async with self.db.transaction() as conn:
            return await stops.ask(conn, self.fence(run), node, "[]", call, [(name, include) for name in names])

    async def carry_out(self) -> list[Ended]:
        """Carries out all that is due."""
        async with self.db.connection() as conn:
            due = await stops.take_due(conn, None, 100)
        return [ended for stop in due for ended in await stops.carry_out(self.db, stop)]

    async def cancel(self, *roots: UUID) -> list[Ended]:
        async with self.db.transaction() as conn:
            return await scopes.end_trees(conn, self.project, roots, BY_USER)

    async def status(self, run: UUID) -> str:
        async with self.db.connection() as conn:
            found = await runs.status(conn, self.project, run)
        assert found is not None
        return found.status

    async def live(self, all_of: Sequence[UUID]) -> list[UUID]:
        return [run for run in all_of if await self.status(run) in ("queued", "running")]

    async def events(self, run: UUID, after: int = 0) -> list[dict[str, Any]]:
        async with self.db.connection() as conn:
            rows = await journal.read(conn, self.project, run, after)
        return [event for row in rows for event in json.loads(row.events)]

    async def kinds(self, run: UUID) -> list[str]:
        return [event["kind"] for event in await self.events(run)]

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """One more session, for the other side of a race."""
        conn = await self.db.dedicated("beside")
        try:
            yield conn
        finally:
            conn.terminate()

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """One more session inside a transaction, committed when the block ends."""
        async with self.beside() as conn, conn.transaction():
            yield conn


@asynccontextmanager
async def later(url: str, ahead: timedelta) -> AsyncIterator[Database]:
    """The same database, for sessions that see its clock ahead. Every session opened from now on does."""
    db = await Database.open(url, pool_size=1, name="weft test")
    async with db.connection() as conn:
        name = await conn.fetchval("SELECT current_database()")
        await conn.execute(f"ALTER DATABASE {name} SET weft.clock_offset = '{ahead.total_seconds()} s'")
    await db.close()
    db = await Database.open(url, pool_size=1, name="weft test")
    try:
        yield db
    finally:
        await db.close()


async def tag_in(conn: Connection, fence: Fence, *names: str) -> bool:
    return await tags.tag(conn, fence, names, encode(ExecutionTagged("tag", (), names)))


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """Looks until there is something to see, and returns it: what is waited for happens in another process."""
    while not (seen := await look()):
        await asyncio.sleep(0.001)
    return seen


async def blocked(conn: Connection, pid: int) -> None:
    """Returns once the session waits for a lock. Asked on a session that is not itself waiting."""
    query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1"
    await until(lambda: conn.fetchval(query, pid))


async def gone(conn: Connection, pid: int) -> None:
    """Returns once the session is no more."""
    query = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
    await until(lambda: conn.fetchval(query, pid))


@asynccontextmanager
async def blocking(watch: Connection, victim: Connection, work: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """Starts `work`, which uses the victim's session, and enters the block once that waits for a lock."""
    task = asyncio.create_task(work)
    try:
        pid = victim.get_server_pid()
        await blocked(watch, pid)
        assert not task.done()
        yield task
    finally:
        if not task.done():
            task.cancel()


__all__ = [
    "BY_USER",
    "LogLine",
    "NodeCompleted",
    "NodeStarted",
    "World",
    "blocked",
    "blocking",
    "gone",
    "later",
    "tag_in",
    "until",
]
