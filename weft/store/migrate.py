"""Brings a database's schema up to this weft: numbered files, one lock, each applied and recorded once.

The files stand in `migrations/NNNN_name.sql`. A file that was ever released is never edited; its checksum is
kept.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import asyncpg

from weft.errors import SchemaTooNew
from weft.store.pool import SCHEMA, Connection

_LOCK: Final = "SELECT pg_advisory_xact_lock(1464157780, 1)"
"""Two-part keys are a lock space of their own, apart from the tag locks; the first part spells `WEFT`."""

_APPLIED: Final = "SELECT number, checksum FROM weft.migrations ORDER BY number"

_RECORDS: Final = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.migrations (
    number      integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered SQL file. Its checksum tells whether a database got this very text."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """What this weft carries, in order."""
    found = []
    for file in resources.files("weft.store").joinpath("migrations").iterdir():
        named = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if named:
            found.append(Migration(int(named[1]), named[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


async def migrate(conn: Connection) -> list[str]:
    """Applies what is missing and returns its names; one round trip when nothing is.

    Call it outside a transaction. Any number of processes may do so at once. Raises `SchemaTooNew` when the
    database knows a migration that this weft does not, or knows one differently.
    """
    if not _missing(await _applied(conn)):
        return []
    async with conn.transaction():
        # The one wait that may be long: another process is applying a migration to a big database.
        await conn.execute("SET LOCAL lock_timeout = 0")
        await conn.execute(f"SET LOCAL search_path = {SCHEMA}")
        await conn.execute(_LOCK)
        await conn.execute(_RECORDS)
        missing = _missing({row["number"]: row["checksum"] for row in await conn.fetch(_APPLIED)})
        for migration in missing:
            await conn.execute(migration.text)
            await conn.execute(
                "INSERT INTO weft.migrations (number, name, checksum) VALUES ($1, $2, $3)",
                migration.number,
                migration.name,
                migration.checksum,
            )
    return [migration.name for migration in missing]


async def _applied(conn: Connection) -> dict[int, str]:
    try:
        return {row["number"]: row["checksum"] for row in await conn.fetch(_APPLIED)}
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return {}


def _missing(applied: dict[int, str]) -> list[Migration]:
    known = {migration.number: migration for migration in migrations()}
    beyond = sorted(applied.keys() - known.keys())
    if beyond:
        raise SchemaTooNew(
            f"the database was made by a newer weft: it has migration {beyond[-1]:04}, "
            f"this one knows up to {max(known):04}",
            hint="install that weft, or use another database",
        )
    for number, checksum in applied.items():
        if known[number].checksum != checksum:
            raise SchemaTooNew(
                f"migration {number:04} of the database is not the one that this weft carries",
                hint="install the weft that made the database, or use another database",
            )
    return [migration for number, migration in known.items() if number not in applied]
