"""Workers: who is alive, by a lease and by a lock that PostgreSQL frees when the process dies.

Either proof of death suffices: the lease has lapsed by the store's clock, or the death lock is gone on two
looks in a row. A lock that is held never prolongs a lapsed lease. What a dead worker owned goes back to be
claimed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

from weft.store.beside import beside
from weft.store.pool import CONNECTION_LOST, FIRST_RETRY, LAST_RETRY, Connection, Database, until_lost
from weft.store.runs.runs import SUSPECT
from weft.store.sql import load

_SQL = load(__name__)

_LOCK_CLASS: Final = 1464157797
"""The first part of every death lock's key; the second is the worker's number."""


@dataclass(frozen=True, slots=True)
class Alive:
    """A worker as people see it; `number` is the small one that a line names it by."""

    id: UUID
    number: int
    name: str
    host: str
    pid: int
    started_at: datetime


class Told(NamedTuple):
    """`ended`: the run has ended under its worker. `answered`: a wait of the run has ended, and its journal says so."""

    project: int
    run: UUID
    kind: Literal["ended", "answered"]


async def register(
    conn: Connection, *, host: str, pid: int, projects: Sequence[int], lease: timedelta, name: str = "weft"
) -> UUID:
    """A new worker, alive for one lease. `projects` are those whose runs it claims."""
    worker: UUID = await conn.fetchval(_SQL.register, name, host, pid, list(projects), lease)
    return worker


async def renew(conn: Connection, worker: UUID) -> bool:
    """Begins the lease anew. False: the worker was given up as dead, and owns nothing any more."""
    return await conn.fetchval(_SQL.renew, worker) is not None


async def revive(conn: Connection, worker: UUID) -> None:
    """Makes a worker that was given up alive again, owning nothing: what was not yet taken from it is given back."""
    async with conn.transaction():
        await conn.execute(_SQL.give_back_own, worker)
        await conn.execute(_SQL.revive, worker)


async def leave(conn: Connection, worker: UUID) -> list[tuple[int, UUID]]:
    """Signs off. Returns project and run of what it still owned and gave back."""
    async with conn.transaction():
        rows = await conn.fetch(_SQL.give_back_own, worker)
        await conn.execute(_SQL.sign_off, worker)
        await conn.execute(_SQL.forget_notices)
    return [(row["project"], row["run"]) for row in rows]


async def number(conn: Connection, worker: UUID) -> int | None:
    """The number by which people know the worker, or None when it is long gone."""
    found: int | None = await conn.fetchval(_SQL.number, worker)
    return found


async def alive(conn: Connection, project: int) -> list[Alive]:
    """The workers that claim runs of the project now."""
    return [Alive(*row) for row in await conn.fetch(_SQL.alive, project)]


async def notices(conn: Connection, worker: UUID) -> list[Told]:
    """What the worker must hear: what ended under it, and what of its own was answered. Stands there until it is
    heeded, since the answer to this may be lost."""
    return [Told(*row) for row in await conn.fetch(_SQL.notices, worker)]


async def heed(conn: Connection, worker: UUID, told: Sequence[Told]) -> None:
    """The worker has heard this. Look at the runs only after it: what is said again meanwhile is the same notice."""
    await conn.execute(_SQL.heed, worker, [each.run for each in told], [each.kind for each in told])


# --- death ------------------------------------------------------------------------------------------------


async def without_death_lock(conn: Connection) -> list[UUID]:
    """Workers whose lock could be seen once and cannot be now."""
    return [row["id"] for row in await conn.fetch(_SQL.without_death_lock, _LOCK_CLASS)]


class Look(NamedTuple):
    """`told`: there are notices. `ready`: something can be claimed. `suspects`: so can runs that may kill who drives
    them. `leaves_runs`: a worker's lease has lapsed, or one that is dead owns something. `unlocked` are workers whose
    lock could be seen once and cannot be now: one look is no proof, since after a restart of the server (`server_up`
    for so long) all locks are free for a moment."""

    told: bool
    ready: bool
    suspects: bool
    leaves_runs: bool
    unlocked: list[UUID]
    server_up: timedelta


async def look(conn: Connection, worker: UUID, projects: Sequence[int], only: Sequence[UUID] | None) -> Look:
    """What a worker that claims runs of these projects (of them `only` these, None: any) would find now. One
    statement."""
    chosen = None if only is None else list(only)
    return Look(*await conn.fetchrow(_SQL.look, _LOCK_CLASS, worker, list(projects), chosen, SUSPECT))


async def release_dead(conn: Connection, dead: Sequence[UUID]) -> list[tuple[int, UUID, UUID]]:
    """Gives up the workers named and all whose lease has lapsed, and gives back what dead workers own.

    Returns project, run and worker of each run that can be claimed again. Each statement commits by itself.
    """
    await conn.execute(_SQL.bury, list(dead))
    rows = await conn.fetch(_SQL.give_back)
    return [(row["project"], row["run"], row["worker"]) for row in rows]


async def forget(conn: Connection) -> None:
    """Deletes what nobody will hear any more, and workers that ended long ago."""
    await conn.execute(_SQL.forget_notices)
    await conn.execute(_SQL.forget_workers)


@asynccontextmanager
async def death_lock(db: Database, worker: UUID) -> AsyncIterator[None]:
    """Holds the worker's death lock on a connection of its own, taken again whenever that is lost.

    It counts as a proof only where other connections see it: a pooler in between may hide it, or keep it for
    ever.
    """
    async with db.connection() as conn:
        key = await number(conn, worker)
    tried = asyncio.Event()
    async with beside(_hold(db, worker, key, tried)):
        await tried.wait()
        yield


async def _hold(db: Database, worker: UUID, key: int | None, tried: asyncio.Event) -> None:
    pause = FIRST_RETRY
    while True:
        held = None
        try:
            held = await db.dedicated("death lock")
            if await held.fetchval(_SQL.hold, _LOCK_CLASS, key):
                async with db.connection() as other:
                    await other.fetchval(_SQL.lock_is_proof, worker, _LOCK_CLASS)
                pause = FIRST_RETRY
                tried.set()
                await until_lost(held)
        except CONNECTION_LOST:
            pass
        finally:
            if held is not None:
                held.terminate()
        tried.set()
        await asyncio.sleep(pause.total_seconds())
        pause = min(pause * 2, LAST_RETRY)
