"""A world for each test, and the invariants after it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.store.invariants import check_invariants
from tests.store.world import World


@pytest_asyncio.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    async with World.open(database_url) as world:
        yield world
        async with world.db.connection() as conn:
            await check_invariants(conn)
