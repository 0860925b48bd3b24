"""Retention: ended trees go with all their rows, and nothing else does."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.store.parking import answer, name, park, parked
from tests.store.world import HASH, LogLine, NodeCompleted, World, later
from weft.flow.events import encode
from weft.store import projects
from weft.store.pool import Database
from weft.store.runs import journal, programs, retention, runs, snapshots
from weft.store.runs.retention import Doomed
from weft.store.runs.snapshots import Snapshot

NOW = timedelta(0)
OF_RUNS = ("runs", "scopes", "journal", "ready", "tags", "stops", "waits", "run_aftermath", "notices", "snapshots")


async def sizes(world: World) -> dict[str, int]:
    async with world.db.connection() as conn:
        return {table: await conn.fetchval(f"SELECT count(*) FROM {table}") for table in OF_RUNS}


async def clean(world: World, keep: timedelta = NOW) -> int:
    return await retention.delete(world.db, world.project, keep)


async def would_go(world: World, keep: timedelta = NOW) -> list[Doomed]:
    async with world.db.connection() as conn:
        return await retention.count(conn, [world.project], keep)


async def test_b47_finished_runs_go_in_bounded_batches_and_parked_ones_stay(world: World) -> None:
    finished, most = 5_000, 0
    for _ in range(10):
        await end_all(world, await world.start(finished // 10))
    await parked(world, 50)
    before = await sizes(world)
    assert await would_go(world) == [Doomed(world.project, finished, finished * 2)]
    async with world.db.connection() as conn:
        await conn.execute(
            """CREATE TABLE public.batches (rows integer);
               CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
                   $$BEGIN INSERT INTO public.batches SELECT count(*) FROM gone; RETURN NULL; END$$;
               CREATE TRIGGER note AFTER DELETE ON scopes REFERENCING OLD TABLE AS gone
                   FOR EACH STATEMENT EXECUTE FUNCTION public.note()"""
        )
    assert await clean(world) == finished
    async with world.db.connection() as conn:
        most = await conn.fetchval("SELECT max(rows) FROM public.batches")
        await conn.execute("DROP TRIGGER note ON scopes")
    assert 0 < most <= retention.CHUNK
    after = await sizes(world)
    assert after == {**before, "runs": 50, "scopes": 50, "journal": 100}
    assert await would_go(world) == []
    assert await clean(world) == 0


async def end_all(world: World, some: list[Any]) -> None:
    assert len(await world.append(*(world.last_write(run) for run in some))) == len(some)


async def test_all_that_hangs_on_a_run_goes_with_it(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    other = await world.start_one()
    await world.tag(run, "sender")
    await world.tag(other, "sender")
    await world.ask(run, "sender")
    await world.carry_out()
    await park(world, run, after=3)
    async with world.db.connection() as conn:
        await snapshots.put(conn, world.fence(run), Snapshot(5, "{}"))
    await answer(world, name(run))
    async with world.db.connection() as conn:
        await runs.claim(conn, world.worker, [world.project], 1)
        await journal.append(conn, world.worker, [world.write(run, NodeCompleted("ask"), lease=2)])
    await world.cancel(run)
    await world.cancel(other)
    async with world.db.connection() as conn:
        await journal.aftermath(conn, world.project, run, encode(LogLine("ask", (), "info", "late")))
    held = await sizes(world)
    assert all(held[table] for table in OF_RUNS if table not in ("ready", "waits")), held
    assert await clean(world) == 2
    assert set((await sizes(world)).values()) == {0}


async def test_nothing_that_can_still_happen_is_deleted(world: World) -> None:
    running, queued = await world.start_one(), await world.start_one(queued=True)
    [waiting] = await parked(world)
    parent = await world.start_one()
    await world.finish(await world.start_one(below=parent))
    assert await would_go(world) == []
    assert await clean(world) == 0
    assert [await world.status(run) for run in (running, queued, waiting)] == ["running", "queued", "waiting"]


async def test_a_tree_goes_from_its_leaves_up(world: World) -> None:
    root = await world.start_one()
    for child in await world.start(3, below=root):
        for grandchild in await world.start(2, below=child):
            await world.start(2, below=grandchild, queued=True)
    await world.start_one()
    await world.cancel(root)
    [doomed] = await would_go(world)
    assert doomed.runs == 1 + 3 + 6 + 12
    assert await clean(world) == 22
    assert (await sizes(world))["runs"] == 1


async def test_what_ended_lately_is_kept(world: World, database_url: str) -> None:
    long_ago = await world.start_one()
    await world.finish(long_ago)
    parked_then = await parked(world)
    async with later(database_url, timedelta(days=9)) as db:
        async with World.open(database_url) as now:
            lately = await now.start_one()
            await now.finish(lately)
        for run in parked_then:
            await world.cancel(run)
        assert await retention.delete(db, world.project, timedelta(days=30)) == 0
        assert await retention.delete(db, world.project, timedelta(days=7)) == 2, "started and ended before"
    async with world.db.connection() as conn:
        assert [row["id"] for row in await conn.fetch("SELECT id FROM runs")] == [lately]


async def test_one_that_asked_a_stop_is_kept_until_it_is_carried_out(world: World) -> None:
    asker, target = await world.start(2)
    await world.tag(target, "sender")
    await world.ask(asker, "sender")
    await world.finish(asker)
    assert await clean(world) == 0
    assert [each.run for each in await world.carry_out()] == [target]
    assert await clean(world) == 2


async def test_one_project_at_a_time(world: World) -> None:
    async with world.db.connection() as conn:
        other = await projects.ensure(conn, "other", "Other")
        [theirs] = await runs.start(conn, other, world.worker, [world.new()])
        last = world.last_write(theirs)
        last.project = other
        await journal.append(conn, world.worker, [last])
    await world.finish(await world.start_one())
    async with world.db.connection() as conn:
        counted = await retention.count(conn, [world.project, other], NOW)
    assert counted == [Doomed(world.project, 1, 2), Doomed(other, 1, 2)]
    assert await clean(world) == 1
    async with world.db.connection() as conn:
        assert await retention.count(conn, [world.project, other], NOW) == [Doomed(other, 1, 2)]


async def test_two_clean_ups_at_once_beside_runs_that_start_and_end(world: World, database_url: str) -> None:
    await end_all(world, await world.start(1_500))
    two = [await Database.open(database_url, pool_size=1) for _ in range(2)]

    async def busy() -> None:
        for _ in range(20):
            await end_all(world, await world.start(10))

    first, second, _ = await asyncio.gather(*(retention.delete(db, world.project, NOW) for db in two), busy())
    assert first + second + await clean(world) == 1_500 + 200
    assert (await sizes(world))["journal"] == 0
    for db in two:
        await db.close()


async def test_a_month_without_events_is_dropped_once_it_is_over(world: World, database_url: str) -> None:
    count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'weft.journal'::regclass"
    run = await world.start_one()
    async with world.db.connection() as conn:
        before = await conn.fetchval(count)
        # One month is still kept after it is over, so of the two whole ones between, the first alone is dropped.
        ahead = await conn.fetchval("SELECT date_trunc('month', now(), 'UTC') + interval '3 months 14 days' - now()")
    async with later(database_url, ahead) as db:
        async with World.open(database_url) as then:
            await then.start_one()
        await retention.delete(db, world.project, NOW)
        async with db.connection() as conn:
            assert await conn.fetchval(count) == before - 1, "not the first, which has a live run; the one after it"
        await world.cancel(run)
        assert await retention.delete(db, world.project, NOW) == 1
        async with db.connection() as conn:
            assert await conn.fetchval(count) == before - 2


async def test_programs_go_with_the_last_run_of_theirs_and_not_before(world: World, database_url: str) -> None:
    async with world.db.connection() as conn:
        for each in (HASH, "unused", "started again"):
            await programs.put(conn, world.project, each, "{}")
    run = await world.start_one()
    async with later(database_url, timedelta(days=2)) as db, db.connection() as conn:
        # Who starts runs of a program puts it first: from then on it is spared for a day.
        await programs.put(conn, world.project, "started again", "{}")
    known = "SELECT hash FROM programs ORDER BY hash"
    async with later(database_url, timedelta(days=2)) as db:
        await retention.delete(db, world.project, NOW)
        async with db.connection() as conn:
            assert [row["hash"] for row in await conn.fetch(known)] == [HASH, "started again"]
        await world.cancel(run)
        await retention.delete(db, world.project, NOW)
        async with db.connection() as conn:
            assert [row["hash"] for row in await conn.fetch(known)] == ["started again"]
