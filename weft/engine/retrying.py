"""What the engine does while the store is away: it waits, and tries again for as long as it takes.

Only for work that may be repeated: after a lost connection nobody knows whether the statement was carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from weft.log import get_logger
from weft.store.pool import CONNECTION_LOST, Connection, Database

T = TypeVar("T")

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
"""Seconds between two attempts; doubled from the first to the longest."""

log = get_logger("weft.store")


async def retrying(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """The result of `work` on a pooled connection, tried until the store is there."""

    async def connected() -> T:
        async with database.connection() as connection:
            return await work(connection)

    return await retrying_whole(connected)


async def retrying_whole(work: Callable[[], Awaitable[T]]) -> T:
    """The same for work that takes its connections itself."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except CONNECTION_LOST as error:
            log.warning("the store is away; trying again", error=str(error), pause=pause)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
