"""A database for one test, made on any server and dropped afterwards, whose clock can be set ahead."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import anyio
import asyncpg

from weft.store.migrate import migrate
from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)


@asynccontextmanager
async def scratch_database(server: str) -> AsyncIterator[str]:
    """The URL of a new database with weft's schema. `server` is the URL of any database of the server.

    Those that a killed test left there more than an hour ago are dropped too.
    """
    name = f"weft_scratch_{int(time.time())}_{uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    connection = await asyncpg.connect(server)
    try:
        for row in await connection.fetch(_SQL.left_over):
            with suppress(asyncpg.PostgresError):  # another test drops it too
                await connection.execute(f"DROP DATABASE IF EXISTS {row['datname']}")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            own = await asyncpg.connect(url)
            try:
                await migrate(own)
                await own.execute(_SQL.own_clock)
            finally:
                await own.close()
            yield url
        finally:
            with anyio.CancelScope(shield=True):
                await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    finally:
        await connection.close()


async def set_ahead(connection: Connection, span: timedelta) -> None:
    """Set the clock of a scratch database ahead by this much more."""
    await connection.execute(_SQL.set_ahead, span)


async def busy(connection: Connection) -> bool:
    """Whether any run is driven, or is to be."""
    found: bool = await connection.fetchval(_SQL.busy)
    return found
