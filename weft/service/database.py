"""About the database itself: which server, how big, at which of weft's migrations."""

from __future__ import annotations

from dataclasses import dataclass

from weft.store.migrate import migrations
from weft.store.pool import Database
from weft.store.runs import listing


@dataclass(frozen=True, slots=True)
class About:
    """`schema` is the number of the newest migration; an opened store has all that this weft knows."""

    server: str
    name: str
    bytes: int
    schema: int


async def about(database: Database) -> About:
    async with database.connection() as connection:
        server, name, size = await listing.about_database(connection)
    return About(server, name, size, max(migration.number for migration in migrations()))
