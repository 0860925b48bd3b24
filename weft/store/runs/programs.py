"""Compiled programs, each stored once by its hash. A run keeps the program that it was started with."""

from __future__ import annotations

from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)


async def put(conn: Connection, project: int, hash: str, text: str) -> None:
    """Stores the program's canonical JSON text under its hash; does nothing where it is already."""
    await conn.execute(_SQL.put, project, hash, text)


async def get(conn: Connection, project: int, hash: str) -> str | None:
    """The program's canonical JSON text, or None."""
    text: str | None = await conn.fetchval(_SQL.get, project, hash)
    return text
