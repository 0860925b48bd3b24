"""How runs label themselves: order, fences, and what a crash or a second call leaves behind."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import pytest

from tests.store.world import BY_USER, World, blocking, tag_in
from weft.errors import FenceLost, RunEnded
from weft.store.pool import Connection
from weft.store.runs import runs, scopes, stops, tags

ROUNDS = 100


async def tags_of(world: World, run: UUID) -> list[str]:
    async with world.db.connection() as conn:
        return await tags.of_run(conn, world.project, run)


async def test_tags_are_listed_in_the_order_claimed(world: World) -> None:
    one, two, bare = await world.start(3)
    assert await world.tag(one, "zebra", "apple", "middle")
    assert await world.tag(two, "first")
    assert await world.tag(one, "apple", "last")
    assert await tags_of(world, one) == ["zebra", "apple", "middle", "last"]
    async with world.db.connection() as conn:
        listed = await tags.of_runs(conn, world.project, [two, bare, one])
    assert listed == {one: ["zebra", "apple", "middle", "last"], two: ["first"]}


async def test_the_event_carries_the_tags_of_the_call_and_is_not_written_twice(world: World) -> None:
    run = await world.start_one()
    assert await world.tag(run, "a", "b")
    assert not await world.tag(run, "b", "a")
    assert await world.tag(run, "a", "c")
    events = [event["tags"] for event in await world.events(run) if event["kind"] == "execution_tagged"]
    assert events == [["a", "b"], ["a", "c"]]


async def test_a_run_may_be_started_with_tags(world: World) -> None:
    async with world.db.transaction() as conn:
        run = await tags.start_tagged(conn, world.project, None, world.new(), ["b", "a"])
    assert await tags_of(world, run) == ["b", "a"]
    assert (await world.events(run))[-1] == {"kind": "execution_tagged", "tags": ["b", "a"]}


async def test_race_02_the_order_of_numbers_is_the_order_of_commits(world: World) -> None:
    """A tags and its commit is held; B cannot draw a number before. So B's stop finds A, and A's finds nobody."""
    a, b = await world.start(2)
    async with world.beside() as first, world.beside() as second, world.beside() as watch:
        held = first.transaction()
        await held.start()
        await tag_in(first, world.fence(a), "sender")
        late = second.transaction()
        await late.start()
        async with blocking(watch, second, tag_in(second, world.fence(b), "sender")) as tagging:
            await held.commit()
            assert await tagging
        await late.commit()
    await world.ask(a, "sender")
    await world.ask(b, "sender")
    await world.carry_out()
    assert await world.live([a, b]) == [b]


async def test_race_02_started_with_a_tag_waits_like_any_other(world: World) -> None:
    a = await world.start_one()
    async with world.beside() as first, world.beside() as second, world.beside() as watch:
        held = first.transaction()
        await held.start()
        await tag_in(first, world.fence(a), "sender")

        async def start_tagged() -> UUID:
            async with second.transaction():
                return await tags.start_tagged(second, world.project, world.worker, world.new(), ["sender"])

        async with blocking(watch, second, start_tagged()) as starting:
            await held.commit()
            b = await starting
    await world.ask(b, "sender")
    await world.carry_out()
    assert await world.status(a) == "cancelled"


async def test_race_06_tagging_again_keeps_the_place(world: World) -> None:
    elder, younger = await world.start(2)
    await world.tag(elder, "sender")
    await world.tag(younger, "sender")
    await world.tag(elder, "sender", "more")
    await world.ask(elder, "sender")
    await world.carry_out()
    assert await world.live([elder, younger]) == [elder, younger]
    await world.ask(younger, "sender")
    await world.carry_out()
    assert await world.live([elder, younger]) == [younger]


async def test_race_13_a_refused_call_writes_none_of_its_tags(world: World) -> None:
    run = await world.start_one()
    with pytest.raises(FenceLost):
        async with world.db.transaction() as conn:
            await tag_in(conn, world.fence(run, lease=2), "a", "b", "c")
    assert await tags_of(world, run) == []
    assert await world.kinds(run) == ["execution_started"]


async def test_race_19_tags_and_stops_go_with_their_run(world: World) -> None:
    gone, stays = await world.start(2)
    await world.tag(gone, "sender")
    await world.tag(stays, "sender")
    await world.ask(gone, "other")
    await world.finish(gone)
    async with world.db.connection() as conn:
        await conn.execute("DELETE FROM journal WHERE run = $1", gone)
        await conn.execute("DELETE FROM scopes WHERE id = $1", gone)
        assert [row["run"] for row in await conn.fetch("SELECT run FROM tags")] == [stays]
        assert await conn.fetchval("SELECT count(*) FROM stops") == 0
        assert await conn.fetchval("SELECT count(*) FROM runs") == 1


async def test_race_20_an_ended_run_can_neither_tag_nor_ask(world: World) -> None:
    run = await world.start_one()
    await world.cancel(run)
    with pytest.raises(RunEnded):
        await world.tag(run, "sender")
    with pytest.raises(RunEnded):
        await world.ask(run, "sender")
    assert await tags_of(world, run) == []


@pytest.mark.parametrize("call", ["tag", "ask"])
async def test_race_20_a_tag_that_waits_for_a_cancel_is_refused(world: World, call: str) -> None:
    run = await world.start_one()
    async with world.beside() as canceller, world.beside() as other, world.beside() as watch:
        cancel = canceller.transaction()
        await cancel.start()
        await scopes.end_trees(canceller, world.project, [run], BY_USER)

        async def attempt() -> None:
            async with other.transaction():
                if call == "tag":
                    await tag_in(other, world.fence(run), "sender")
                else:
                    await stops.ask(other, world.fence(run), "n", "[]", 0, [("sender", False)])

        async with blocking(watch, other, attempt()) as waiting:
            await cancel.commit()
            with pytest.raises(RunEnded):
                await waiting
        assert await watch.fetchval("SELECT (SELECT count(*) FROM tags) + (SELECT count(*) FROM stops)") == 0


async def test_race_53_a_worker_that_was_overtaken_can_neither_tag_nor_ask(world: World) -> None:
    run = await world.start_one()
    async with world.db.connection() as conn:
        await runs.release(conn, [world.fence(run)])
        for refused in (world.fence(run), world.fence(run, lease=0)):
            with pytest.raises(FenceLost):
                async with conn.transaction():
                    await tag_in(conn, refused, "sender")
        [again] = await runs.claim(conn, world.worker, [world.project], 1)
        assert again.lease == 2
    with pytest.raises(FenceLost):
        await world.tag(run, "sender")
    async with world.db.transaction() as conn:
        assert await tag_in(conn, world.fence(run, lease=2), "sender")


async def test_race_54_a_tag_whose_commit_was_lost_is_tried_again_and_stands_once(world: World) -> None:
    """The connection dies once before the commit arrived and once after it; nobody can tell which it was."""
    run, other = await world.start(2)
    for arrived in (False, True):
        async with world.beside() as lost:
            transaction = lost.transaction()
            await transaction.start()
            await tag_in(lost, world.fence(run), "sender")
            if arrived:
                await transaction.commit()
    await world.tag(other, "sender")
    assert not await world.tag(run, "sender")
    assert await tags_of(world, run) == ["sender"]
    assert (await world.kinds(run)).count("execution_tagged") == 1
    await world.ask(other, "sender")
    await world.carry_out()
    assert await world.status(run) == "cancelled"


async def test_race_59_tags_taken_in_any_order_do_not_deadlock(world: World) -> None:
    names = [f"tag{number}" for number in range(5)]
    async with world.beside() as one, world.beside() as two, world.beside() as three:
        sessions = [one, two, three]
        for conn in sessions:
            await conn.execute("SET deadlock_timeout = '10ms'")

        async def tag_some(conn: Connection, seed: int) -> None:
            choose = random.Random(seed)
            for run in await runs.start(conn, world.project, world.worker, [world.new()] * (ROUNDS // 3)):
                async with conn.transaction():
                    await tag_in(conn, world.fence(run), *choose.sample(names, 3))

        await asyncio.gather(*(tag_some(conn, seed) for seed, conn in enumerate(sessions)))
    async with world.db.connection() as conn:
        assert await conn.fetchval("SELECT count(*) FROM tags") == 3 * 3 * (ROUNDS // 3)


async def test_race_59_locks_are_taken_by_their_key(world: World) -> None:
    """The one that a call waits for is the lowest key of those it needs: it holds none above."""
    async with world.beside() as holder, world.beside() as other, world.beside() as watch:
        key = "SELECT hashtextextended($1::text || ':' || $2, 0)"
        keys = {name: await watch.fetchval(key, str(world.project), name) for name in "abcdefgh"}
        lowest = min(keys, key=lambda name: keys[name])
        async with holder.transaction():
            await tags.lock(holder, world.project, [lowest])

            async def lock_all() -> None:
                async with other.transaction():
                    await tags.lock(other, world.project, sorted(keys))

            async with blocking(watch, other, lock_all()) as waiting:
                held = await watch.fetchval(
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = $1 AND granted",
                    other.get_server_pid(),
                )
                assert held == 0
                waiting.cancel()
