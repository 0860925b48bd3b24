"""Projects: the text key that names one everywhere, and the small number that stands before all of its data."""

from __future__ import annotations

from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)


async def ensure(conn: Connection, key: str, name: str) -> int:
    """The project's number in this database, given out on first sight. A changed name is kept."""
    found = await conn.fetchrow(_SQL.find, key)
    if found is None:
        await conn.execute(_SQL.add, key, name)
        found = await conn.fetchrow(_SQL.find, key)
    if found["name"] != name:
        await conn.execute(_SQL.rename, key, name)
    return int(found["id"])


async def find(conn: Connection, key: str) -> int | None:
    """The project's number, or None where this database has never seen it."""
    found = await conn.fetchrow(_SQL.find, key)
    return None if found is None else int(found["id"])
