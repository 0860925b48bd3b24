"""Starting, claiming and giving back."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from tests.store.world import LogLine, World
from weft.errors import RunEnded
from weft.store import projects
from weft.store.pool import Database
from weft.store.runs import journal, programs, runs, workers


async def test_ids_come_back_in_the_order_given_and_sort_by_time(world: World) -> None:
    async with world.db.connection() as conn:
        new = [runs.NewRun("h", f"entry{number}", ["{}"] * (number + 1)) for number in range(50)]
        ids = await runs.start(conn, world.project, None, new)
        later = await runs.start(conn, world.project, None, [world.new()])
        found = [await runs.status(conn, world.project, run) for run in ids]
        await conn.execute("TRUNCATE scopes, runs, ready, journal CASCADE")
    assert [each.entry for each in found if each] == [run.entry for run in new]
    assert [each.next_seq for each in found if each] == [len(run.events) + 1 for run in new]
    assert max(ids) < later[0]
    assert {run.version for run in ids} == {7}


async def test_a_run_is_born_claimed_by_a_live_worker_only(world: World) -> None:
    async with world.db.connection() as conn:
        [born] = await runs.start(conn, world.project, world.worker, [world.new()])
        [orphan] = await runs.start(conn, world.project, uuid4(), [world.new()])
        assert [each.run for each in await runs.owned(conn, world.worker)] == [born]
        [claimed] = await runs.claim(conn, world.worker, [world.project], 10)
    assert (claimed.run, claimed.lease) == (orphan, 1)


async def test_claims_go_by_project_and_age_and_never_twice(world: World, database_url: str) -> None:
    async with world.db.connection() as conn:
        other = await projects.ensure(conn, "other", "Other")
        mine = await runs.start(conn, world.project, None, [world.new()] * 60)
        theirs = await runs.start(conn, other, None, [world.new()] * 5)
        first = await runs.claim(conn, world.worker, [world.project], 10)
        assert [each.run for each in first] == sorted(mine)[:10]
        assert {(each.lease, each.next_seq, each.program) for each in first} == {(1, 2, world.new().program)}
    second = await Database.open(database_url, pool_size=4)

    async def claim() -> list[runs.Claimed]:
        async with second.connection() as conn:
            return await runs.claim(conn, world.worker, [world.project, other], 20)

    try:
        claimed = [each.run for batch in await asyncio.gather(*(claim() for _ in range(4))) for each in batch]
        while more := await claim():
            claimed += [each.run for each in more]
    finally:
        await second.close()
    assert sorted(claimed) == sorted([*mine[10:], *theirs])


async def test_what_is_given_back_can_be_claimed_and_the_old_lease_is_refused(world: World) -> None:
    run, kept, ended = await world.start(3)
    await world.finish(ended)
    fences = [world.fence(run), world.fence(kept, lease=7), world.fence(ended), world.fence(uuid4())]
    async with world.db.connection() as conn:
        await runs.release(conn, fences)
        old = world.write(run, LogLine("n", (), "info", "x"))
        assert await journal.append(conn, world.worker, [old]) == {}
        [claimed] = await runs.claim(conn, world.worker, [world.project], 10)
        assert await journal.append(conn, world.worker, [old]) == {}
    assert (claimed.run, claimed.lease) == (run, 2)
    assert await world.append(world.write(run, LogLine("n", (), "info", "x"), lease=2)) == {run: 3}
    assert await world.live([run, kept]) == [run, kept]


async def test_a_worker_that_was_given_up_claims_nothing(world: World) -> None:
    await world.start_one(queued=True)
    async with world.db.connection() as conn:
        await workers.leave(conn, world.worker)
        assert await runs.claim(conn, world.worker, [world.project], 10) == []


async def test_programs_are_stored_once_by_their_hash(world: World) -> None:
    async with world.db.connection() as conn:
        await programs.put(conn, world.project, "h1", '{"b":1,"a":2}')
        await programs.put(conn, world.project, "h1", '{"other":true}')
        assert await programs.get(conn, world.project, "h1") == '{"b":1,"a":2}'
        assert await programs.get(conn, world.project, "h2") is None
        assert await programs.get(conn, world.project + 1, "h1") is None


async def test_a_project_keeps_its_number_and_takes_a_new_name(world: World) -> None:
    async with world.db.connection() as conn:
        assert await projects.ensure(conn, "demo", "New name") == world.project
        assert await conn.fetchval("SELECT name FROM projects WHERE key = 'demo'") == "New name"
        assert await projects.ensure(conn, "second", "Demo") != world.project
        assert await projects.find(conn, "demo") == world.project
        assert await projects.find(conn, "nowhere") is None


async def test_race_58_everything_works_with_a_pool_of_one(world: World) -> None:
    """The world's own pool has one connection; many callers at once take turns."""

    async def message(number: int) -> None:
        run = await world.start_one()
        await world.tag(run, f"tag{number % 3}")
        await world.ask(run, f"tag{number % 3}")
        await world.carry_out()
        await world.finish(run)

    done = await asyncio.gather(*(message(number) for number in range(20)), return_exceptions=True)
    assert [error for error in done if error is not None and not isinstance(error, RunEnded)] == []
