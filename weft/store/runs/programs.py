"""Compiled programs, each stored once by its hash. A run keeps the program that it was started with."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)

USED_FOR: Final = timedelta(hours=12)
"""After so long who starts runs of a program puts it again."""


async def put(conn: Connection, project: int, hash: str, text: str) -> None:
    """Stores the program's canonical JSON text under its hash, and marks it as used. Good for `USED_FOR`: retention
    leaves programs alone that were put so lately."""
    await conn.execute(_SQL.put, project, hash, text)


async def get(conn: Connection, project: int, hash: str) -> str | None:
    """The program's canonical JSON text, or None."""
    text: str | None = await conn.fetchval(_SQL.get, project, hash)
    return text
