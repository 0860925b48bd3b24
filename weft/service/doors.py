"""The address of a `weft serve` that is open, so that a form or webhook can be told with its whole address."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from weft.store import doors
from weft.store.pool import Database

ANYWHERE = "-"


@asynccontextmanager
async def announced(database: Database, address: str, *, local: bool) -> AsyncIterator[None]:
    """Tell this address to whoever asks while the block lasts; a `local` one only to processes of this machine."""
    async with doors.announced(database, f"{_machine() if local else ANYWHERE} {address}"):
        yield


async def address(database: Database) -> str | None:
    """Where a door is open that can be reached from here, or None where none is known."""
    async with database.connection() as connection:
        said = [each.partition(" ") for each in await doors.seen(connection)]
    return next((address for where, _, address in said if where in (ANYWHERE, _machine())), None)


def _machine() -> str:
    return hashlib.sha256(socket.gethostname().encode("utf-8", "surrogateescape")).hexdigest()[:8]
