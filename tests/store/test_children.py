"""Runs that wait for runs: whichever comes first, the end or the wait, the one that waits is told once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.store.parking import answer, name, park, parked, resolutions, suspended
from tests.store.world import NodeCompleted, World, later
from weft.flow.events import ExecutionFailed, encode
from weft.store.pool import Database
from weft.store.runs import children, journal, retention, scopes, waits
from weft.store.runs.journal import Saved
from weft.store.runs.waits import Woken

ROUNDS = 100


async def look(world: World, limit: int = 100) -> Woken:
    async with world.db.connection() as conn:
        return await children.take_ended(conn, limit)


async def outbox(world: World) -> int:
    async with world.db.connection() as conn:
        return int(await conn.fetchval("SELECT count(*) FROM outbox"))


async def family(world: World) -> tuple[UUID, UUID]:
    """A run that is about to wait, and a run below it."""
    parent = await world.start_one(nodes=["ask"])
    return parent, await world.start_one(below=parent)


async def told(world: World, run: UUID) -> Any:
    [resolution] = await resolutions(world, run)
    return resolution["value"]


async def test_the_end_of_a_child_wakes_the_run_above_it(world: World) -> None:
    parent, child = await family(world)
    await park(world, parent, kinds=("run",), target=child)
    assert (await look(world)).answered == []
    assert await outbox(world) == 0, "it lives, and will say so when it ends"
    assert await world.finish(child)
    async with world.db.connection() as conn:
        left = await scopes.next_due(conn)
        assert left is not None
        assert left <= timedelta(0)
    assert [each.run for each in (await look(world)).answered] == [parent]
    assert await told(world, parent) == {"run": str(child), "status": "completed", "reason": None}
    assert await world.status(parent) == "queued"
    assert await outbox(world) == 0
    assert (await look(world)).answered == []


async def test_a_child_that_ended_before_anybody_waited(world: World) -> None:
    """The parent had not come to its wait when the child's end was looked at."""
    parent, child = await family(world)
    await world.cancel(child)
    assert (await look(world)).answered == []
    assert await outbox(world) == 0
    await park(world, parent, kinds=("run",), target=child)
    assert [each.run for each in (await look(world)).answered] == [parent]
    assert await told(world, parent) == {"run": str(child), "status": "cancelled", "reason": "Cancelled by user"}


async def test_the_end_commits_while_the_wait_is_being_registered(world: World) -> None:
    """Neither sees the other; the look that follows sees both."""
    parent, child = await family(world)
    async with world.holding() as owner:
        await journal.append(owner, world.worker, [suspended(world, parent, "run", target=child)])
        assert await world.finish(child)
        assert (await look(world)).answered == [], "the end is looked at before the wait is there"
        assert await outbox(world) == 0
    assert [each.run for each in (await look(world)).answered] == [parent]


async def test_the_wait_is_looked_at_while_the_end_is_being_committed(world: World) -> None:
    parent, child = await family(world)
    async with world.holding() as owner:
        await journal.append(owner, world.worker, [world.last_write(child)])
        await park(world, parent, kinds=("run",), target=child)
        assert (await look(world)).answered == [], "the wait is looked at before the end is there"
        assert await outbox(world) == 0
    assert [each.run for each in (await look(world)).answered] == [parent]


async def test_registering_ending_and_looking_race(world: World, database_url: str) -> None:
    two = [await Database.open(database_url, pool_size=1) for _ in range(2)]
    for _ in range(ROUNDS):
        parent, child = await family(world)

        async def looks(child: UUID = child) -> list[UUID]:
            async with two[0].connection() as conn:
                return [each.run for _ in range(3) for each in (await children.take_ended(conn, 10)).answered]

        async def ends(child: UUID = child) -> None:
            async with two[1].connection() as conn:
                await journal.append_alone(conn, world.worker, world.last_write(child))

        seen, _, _ = await asyncio.gather(looks(), ends(), park(world, parent, kinds=("run",), target=child))
        seen += [each.run for each in (await look(world)).answered]
        assert seen == [parent]
    for db in two:
        await db.close()


async def test_everybody_who_waits_is_told_and_each_once(world: World, database_url: str) -> None:
    parent, child = await family(world)
    others = await world.start(5, nodes=["ask"])
    await park(world, parent, *others, kinds=("run",), target=child)
    await world.finish(child)
    two = [await Database.open(database_url, pool_size=1) for _ in range(2)]

    async def looks(db: Database) -> list[UUID]:
        async with db.connection() as conn:
            return [each.run for each in (await children.take_ended(conn, 10)).answered]

    seen = await asyncio.gather(*(looks(db) for db in two))
    assert sorted([*seen[0], *seen[1], *[each.run for each in (await look(world)).answered]]) == sorted(
        [parent, *others]
    )
    for db in two:
        await db.close()


async def test_how_a_child_failed_is_said(world: World) -> None:
    parent, child = await family(world)
    await park(world, parent, kinds=("run",), target=child)
    failed = world.last_write(child)
    failed.events, failed.ends, failed.error = [encode(ExecutionFailed("node a failed"))], "failed", "node a failed"
    await world.append(failed)
    await look(world)
    assert await told(world, parent) == {"run": str(child), "status": "failed", "reason": "node a failed"}


async def test_what_ends_with_the_run_above_it_tells_nobody(world: World) -> None:
    parent, child = await family(world)
    await parked(world, below=child)
    await park(world, parent, kinds=("run",), target=child)
    await look(world)
    await world.cancel(parent)
    assert await outbox(world) == 0
    assert await world.status(child) == "cancelled"


async def test_a_run_that_hangs_below_nothing_is_looked_at_again(world: World, database_url: str) -> None:
    """Its end writes no row, so the row of whoever waits for it stays until then."""
    waiter, root = await world.start(2, nodes=["ask"])
    await park(world, waiter, kinds=("run",), target=root)
    assert (await look(world)).answered == []
    assert await outbox(world) == 1
    async with world.db.connection() as conn:
        left = await scopes.next_due(conn)
        assert left is not None
        assert timedelta(0) < left <= children.LOOK_AGAIN
    await world.append(world.last_write(root, NodeCompleted("ask")))
    async with later(database_url, timedelta(seconds=2)) as db, db.connection() as conn:
        assert [each.run for each in (await children.take_ended(conn, 10)).answered] == [waiter]
    assert await outbox(world) == 0


async def test_who_is_held_by_somebody_is_told_later(world: World, database_url: str) -> None:
    parent, child = await family(world)
    await park(world, parent, kinds=("run",), target=child)
    await world.finish(child)
    async with world.holding() as conn:
        await conn.execute("SELECT FROM runs WHERE id = $1 FOR NO KEY UPDATE", parent)
        assert (await look(world)).answered == []
    async with later(database_url, timedelta(seconds=2)) as db, db.connection() as conn:
        assert [each.run for each in (await children.take_ended(conn, 10)).answered] == [parent]


async def test_one_that_cannot_be_told_is_put_off_and_the_rest_are_told(world: World) -> None:
    families = [await family(world) for _ in range(5)]
    for parent, child in families:
        await park(world, parent, kinds=("run",), target=child)
        await world.finish(child)
    bad = families[2][0]
    async with world.db.connection() as conn:
        spoil = "INSERT INTO journal (project, run, first, count, at, events) VALUES ($1, $2, 5, 1, weft_now(), '[{}]')"
        await conn.execute(spoil, world.project, bad)
    woken = await look(world)
    assert {each.run for each in woken.answered} == {parent for parent, _ in families} - {bad}
    assert [wait.run for wait, _ in woken.failed] == [bad]
    async with world.db.connection() as conn:
        left = await scopes.next_due(conn)
        assert left is not None
        assert timedelta(seconds=50) < left
        await conn.execute("DELETE FROM journal WHERE run = $1 AND first = 5", bad)
        await conn.execute("UPDATE outbox SET due = weft_now()")
    assert [each.run for each in (await look(world)).answered] == [bad]


async def test_a_run_that_waits_for_another_and_a_time_hears_what_comes_first(world: World) -> None:
    parent, child = await family(world)
    await park(world, parent, kinds=("run", "form"), target=child)
    await answer(world, name(parent, 1))
    await world.finish(child)
    assert (await look(world)).answered == []
    assert len(await resolutions(world, parent)) == 1


async def test_an_ended_run_that_somebody_waits_for_is_not_cleaned_up(world: World) -> None:
    root = await world.start_one()
    await world.finish(root)
    [waiter] = await parked(world, kinds=("run",), target=root)
    assert await retention.delete(world.db, world.project, timedelta(0)) == 0
    assert [each.run for each in (await look(world)).answered] == [waiter]
    assert await retention.delete(world.db, world.project, timedelta(0)) == 1


async def test_a_run_that_is_no_more_is_told_as_deleted(world: World) -> None:
    gone = await world.start_one()
    await world.finish(gone)
    await retention.delete(world.db, world.project, timedelta(0))
    [waiter] = await parked(world, kinds=("run",), target=gone)
    await look(world)
    assert await told(world, waiter) == {"run": str(gone), "status": "deleted", "reason": None}


async def test_parking_on_a_child_and_its_row_are_one_commit(world: World) -> None:
    parent, child = await family(world)
    async with world.beside() as conn:
        await conn.execute("BEGIN")
        saved = await journal.append(conn, world.worker, [suspended(world, parent, "run", target=child)])
        assert saved == {parent: Saved(5, True)}
    assert await outbox(world) == 0
    async with world.db.connection() as conn:
        assert await waits.of_run(conn, world.project, parent) == []
