"""A project with nodes on a real database, and workers to drive its runs, in this process or in others.

After every test the invariants are asked of the database.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.engine.scene import Scene
from tests.store.invariants import check_invariants


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Scene]:
    async with Scene.open(database_url) as ready:
        yield ready
        # A connection of its own: a test may have cut all the others.
        connection = await ready.database.dedicated("invariants")
        try:
            await check_invariants(connection)
        finally:
            await connection.close()
