"""Listing what waits: found by what it waits for, alone and beside what is under way."""

from __future__ import annotations

from uuid import UUID

from tests.store.parking import park
from tests.store.world import World
from weft.store.runs import listing
from weft.store.runs.listing import Wanted


async def ids(world: World, *statuses: str, limit: int = 10, offset: int = 0) -> list[UUID]:
    async with world.db.connection() as conn:
        wanted = Wanted((world.project,), statuses=statuses, limit=limit, offset=offset)
        return [row.run for row in await listing.page(conn, wanted)]


async def test_what_waits_is_listed_alone_and_beside_what_is_under_way(world: World) -> None:
    parked, running, also_parked = [await world.start_one(nodes=["ask"]) for _ in range(3)]
    ended = await world.start_one()
    for run in (parked, also_parked):
        await park(world, run)
    await world.finish(ended)
    assert await ids(world, "waiting") == [also_parked, parked]
    assert await ids(world, "waiting", limit=1, offset=1) == [parked]
    assert await ids(world, "waiting", "running") == [also_parked, running, parked]
    assert await ids(world, "running", "queued", "waiting", limit=1, offset=1) == [running]
    assert await ids(world, "queued", "waiting", limit=5, offset=1) == [parked]
