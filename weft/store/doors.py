"""Which HTTP doors are open on this database, told by the names of their connections: gone at once with their process.

Through a pooler that gives its connections names of its own none can be seen, and nothing depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from weft.store.beside import beside
from weft.store.pool import CONNECTION_LOST, FIRST_RETRY, LAST_RETRY, Connection, Database, until_lost
from weft.store.sql import load

_SQL = load(__name__)

LONGEST: Final = 48
"""Characters: PostgreSQL cuts the name of a connection at 63."""


@asynccontextmanager
async def announced(db: Database, said: str) -> AsyncIterator[None]:
    """Others see `said` in `seen` until the block is left. Not told where it is longer than `LONGEST` or not ASCII."""
    if len(said) > LONGEST or not said.isascii():
        yield
        return
    tried = asyncio.Event()
    async with beside(_stay(db, said, tried)):
        await tried.wait()
        yield


async def _stay(db: Database, said: str, tried: asyncio.Event) -> None:
    pause = FIRST_RETRY
    while True:
        held = None
        try:
            held = await db.dedicated(f"door {said}")
            pause = FIRST_RETRY
            tried.set()
            await until_lost(held)
        except CONNECTION_LOST:
            pass
        finally:
            tried.set()
            if held is not None:
                held.terminate()
        await asyncio.sleep(pause.total_seconds())
        pause = min(pause * 2, LAST_RETRY)


async def seen(conn: Connection) -> list[str]:
    """What open doors say of themselves, in order."""
    return [row["said"] for row in await conn.fetch(_SQL.seen)]
