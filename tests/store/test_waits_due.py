"""Waits that end by their time: once, to the millisecond, however many processes look, whatever else happens."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.store.parking import PAST, answer, name, park, parked, resolutions, suspended, take_due, waiting
from tests.store.world import World, blocking, later
from weft.errors import AlreadyAnswered, WaitGone
from weft.flow.events import NodeRetryScheduled, encode
from weft.rules.waits import instant_text
from weft.store.pool import Database
from weft.store.runs import journal, runs, scopes, waits, workers
from weft.store.runs.journal import Saved, Write
from weft.store.runs.waits import NewWait

DAY = timedelta(days=1)


async def at(world: World, ahead: timedelta) -> datetime:
    async with world.db.connection() as conn:
        return await waits.now(conn) + ahead


async def next_due(db: Database) -> timedelta | None:
    async with db.connection() as conn:
        return await scopes.next_due(conn)


async def test_a_timer_a_time_out_and_a_back_off_end_each_in_its_way(world: World, database_url: str) -> None:
    timer, form, of_all, retry = await world.start(4, nodes=["ask"])
    due = await at(world, 3 * DAY)
    async with world.db.connection() as conn:
        token = name(retry, call=-1)
        scheduled = NodeRetryScheduled("ask", (), 1, token, instant_text(due), {"message": "no", "type": "E"})
        rests = Write(
            world.project,
            retry,
            1,
            [encode(scheduled)],
            '[["ask"]]',
            waits=[NewWait("ask", "[]", -1, 0, token, "retry", due=due)],
            parks=True,
            after=2,
        )
        saved = await journal.append(
            conn,
            world.worker,
            [
                suspended(world, timer, "timer", due=due),
                suspended(world, form, due=due),
                suspended(world, of_all, "form", "webhook", due=due, mode="all"),
                rests,
            ],
        )
        assert all(each.parked for each in saved.values())
    left = await next_due(world.db)
    assert left is not None
    assert timedelta(0) <= 3 * DAY - left < timedelta(seconds=60)
    assert (await take_due(world)).answered == []
    async with later(database_url, 3 * DAY) as db, db.connection() as conn:
        woken = await waits.take_due(conn, 100)
        assert len(woken.answered) == 5 - 1, "of two parts that time out together one says so"
        assert woken.failed == []
        assert (await waits.take_due(conn, 100)).answered == []
        assert await scopes.next_due(conn) is None
    [of_timer], [of_form], [of_retry] = [await resolutions(world, run) for run in (timer, form, retry)]
    fired = datetime.fromisoformat(of_timer["value"])
    assert timedelta(0) <= fired - due < timedelta(seconds=60)
    assert fired.utcoffset() == timedelta(0)
    assert "timed_out" not in of_timer
    assert (of_form["timed_out"], "value" in of_form) == (True, False)
    assert (of_retry["call"], "value" in of_retry, "timed_out" in of_retry) == (-1, False, False)
    [of_both] = await resolutions(world, of_all)
    assert of_both["timed_out"] is True
    assert await waiting(world, of_all) == []
    with pytest.raises(AlreadyAnswered, match="timed out"):
        await answer(world, name(form))


async def test_race_44_timers_are_exact_to_the_millisecond_and_overdue_ones_fire_at_once(world: World) -> None:
    """The instant is kept as it was given: nothing is counted anew, nothing cut to seconds."""
    due = (await at(world, DAY)).replace(microsecond=123_000)
    ahead, overdue = await world.start(2, nodes=["ask"])
    await park(world, ahead, kinds=("timer",), due=due)
    await park(world, overdue, kinds=("timer",), due=PAST)
    async with world.db.connection() as conn:
        wait = await waits.find(conn, name(ahead))
    assert wait.due == due
    left = await next_due(world.db)
    assert left is not None
    assert left < timedelta(0)
    assert [each.run for each in (await take_due(world)).answered] == [overdue]
    assert (await take_due(world)).answered == [], "restored and looped: still once"
    assert len(await resolutions(world, overdue)) == 1
    left = await next_due(world.db)
    assert left is not None
    assert timedelta(0) < left <= due - await at(world, timedelta(0)) + timedelta(seconds=1)


async def fire(db: Database, limit: int) -> list[UUID]:
    """What a waker does until nothing is due."""
    fired: list[UUID] = []
    async with db.connection() as conn:
        while woken := (await waits.take_due(conn, limit)).answered:
            fired += [each.run for each in woken]
    return fired


async def test_b55_two_workers_and_fifty_timers_of_one_second(world: World, database_url: str) -> None:
    all_of = await parked(world, 50, kinds=("timer",), due=PAST)
    two = [await Database.open(database_url, pool_size=1, name=f"waker {n}") for n in range(2)]
    fired = await asyncio.gather(*(fire(db, 7) for db in two))
    assert sorted(fired[0] + fired[1]) == sorted(all_of)
    for run in all_of:
        assert len(await resolutions(world, run)) == 1
    await asyncio.gather(*(db.close() for db in two))


async def test_race_60_ten_thousand_timers_of_one_second_fire_once_each_in_few_transactions(
    world: World, database_url: str
) -> None:
    count, limit = 10_000, 500
    for _ in range(10):
        await parked(world, count // 10, kinds=("timer",), due=PAST)
    five = [await Database.open(database_url, pool_size=1, name=f"waker {n}") for n in range(5)]
    async with world.db.connection() as conn:
        await conn.execute("SELECT pg_stat_force_next_flush()")
        committed = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        before = await conn.fetchval(committed)
    fired = await asyncio.gather(*(fire(db, limit) for db in five))
    await asyncio.gather(*(db.close() for db in five))
    everywhere = [run for part in fired for run in part]
    assert len(everywhere) == len(set(everywhere)) == count
    async with world.db.connection() as conn:
        await conn.execute("SELECT pg_stat_clear_snapshot()")
        assert count / limit <= await conn.fetchval(committed) - before < 200
        journaled = "SELECT count(*), sum(json_array_length(events)) FROM journal WHERE first = 5"
        assert tuple(await conn.fetchrow(journaled)) == (count, count)
        assert await conn.fetchval("SELECT count(*) FROM ready WHERE worker IS NULL") == count


async def test_many_timers_of_one_run_are_one_commit_with_dense_numbers(world: World) -> None:
    nodes = [f"ask{number}" for number in range(40)]
    run = await world.start_one(nodes=nodes)
    async with world.db.connection() as conn:
        for node in nodes:
            write = suspended(world, run, "timer", node=node, due=PAST, parks=False, open_nodes=nodes)
            [saved] = (await journal.append(conn, world.worker, [write])).values()
        parks = Write(world.project, run, 1, [], write.open_firings, parks=True, after=saved.next_seq - 1)
        assert (await journal.append(conn, world.worker, [parks]))[run].parked
    assert len((await take_due(world, 1000)).answered) == 40
    async with world.db.connection() as conn:
        rows = await journal.read(conn, world.project, run, saved.next_seq - 1)
    assert [(row.first, row.count) for row in rows] == [(saved.next_seq, 40)]


async def test_race_46_a_clock_that_steps_back_fires_nothing_twice(world: World, database_url: str) -> None:
    fired, still = await world.start(2, nodes=["ask"])
    due = await at(world, timedelta(minutes=30))
    await park(world, fired, still, kinds=("timer",), due=due)
    async with later(database_url, timedelta(hours=1)) as db, db.connection() as conn:
        assert [each.run for each in (await waits.take_due(conn, 1)).answered] == [min(fired, still)]
    async with later(database_url, timedelta(hours=-1)) as db, db.connection() as conn:
        assert (await waits.take_due(conn, 10)).answered == []
        left = await scopes.next_due(conn)
        assert left is not None
        assert timedelta(minutes=89) < left < timedelta(minutes=91)
    async with later(database_url, timedelta(hours=1)) as db, db.connection() as conn:
        assert [each.run for each in (await waits.take_due(conn, 10)).answered] == [max(fired, still)]
    assert len(await resolutions(world, fired)) == len(await resolutions(world, still)) == 1


# --- what stands in the way -------------------------------------------------------------------------------


async def test_race_45_one_that_cannot_be_ended_is_put_off_and_the_rest_fire(world: World) -> None:
    all_of = await parked(world, 9, kinds=("timer",), due=PAST)
    bad = all_of[4]
    async with world.db.connection() as conn:
        spoil = "INSERT INTO journal (project, run, first, count, at, events) VALUES ($1, $2, 5, 1, weft_now(), '[{}]')"
        await conn.execute(spoil, world.project, bad)
    woken = await take_due(world)
    assert {each.run for each in woken.answered} == set(all_of) - {bad}
    [(wait, error)] = woken.failed
    assert wait.run == bad
    assert "duplicate key" in str(error)
    left = await next_due(world.db)
    assert left is not None
    assert timedelta(seconds=50) < left <= waits.PUT_OFF, "it does not keep the waker awake"
    assert await world.status(bad) == "waiting"
    async with world.db.connection() as conn:
        await conn.execute("DELETE FROM journal WHERE run = $1 AND first = 5", bad)
        await conn.execute("UPDATE waits SET due = $1", PAST)
    assert [each.run for each in (await take_due(world)).answered] == [bad]


async def test_what_somebody_holds_is_passed_over_and_comes_next(world: World) -> None:
    held, free = await parked(world, 2, kinds=("timer",), due=PAST)
    async with world.holding() as owner:
        await owner.execute("SELECT FROM runs WHERE id = $1 FOR NO KEY UPDATE", held)
        assert [each.run for each in (await take_due(world, 1)).answered] == [free]
        assert (await take_due(world)).answered == []
    assert [each.run for each in (await take_due(world)).answered] == [held]


async def test_b15_a_stop_in_the_second_of_the_timer(world: World) -> None:
    """The one that comes second finds nothing to do and says nothing."""
    first, second = await parked(world, 2, kinds=("timer",), due=PAST)
    async with world.holding() as canceller:
        await scopes.end_trees(canceller, world.project, [first], scopes.Ending("cancelled", "stop", {}))
        woken = await take_due(world)
        assert [each.run for each in woken.answered] == [second]
        assert woken.failed == []
    assert (await take_due(world)).answered == []
    assert (await world.kinds(first))[-1] == "execution_cancelled"
    async with world.beside() as watch, world.beside() as canceller, world.holding() as waker:
        third = (await parked(world, kinds=("timer",), due=PAST))[0]
        assert [each.run for each in (await waits.take_due(waker, 10)).answered] == [third]
        ending = scopes.end_trees(canceller, world.project, [third], scopes.Ending("cancelled", "stop", {}))
        await canceller.execute("BEGIN")
        async with blocking(watch, canceller, ending) as cancelling:
            await waker.execute("COMMIT; BEGIN")
            assert [each.run for each in await cancelling] == [third]
            await canceller.execute("COMMIT")
    assert (await world.kinds(third))[-3:] == ["suspension_resolved", "node_cancelled", "execution_cancelled"]


async def test_race_24_and_26_a_wake_never_opens_an_ended_run_again(world: World) -> None:
    """The end commits while the answer waits for the run's row; nothing of the answer is left."""
    [run] = await parked(world)
    async with world.beside() as watch, world.beside() as person, world.holding() as canceller:
        await scopes.end_trees(canceller, world.project, [run], scopes.Ending("cancelled", "stop", {}))
        async with blocking(watch, person, waits.answer(person, name(run), "1", "Ann")) as answering:
            await canceller.execute("COMMIT; BEGIN")
            with pytest.raises(WaitGone, match="stop"):
                await answering
    assert await resolutions(world, run) == []
    assert await world.status(run) == "cancelled"
    async with world.db.connection() as conn:
        assert await runs.claim(conn, world.worker, [world.project], 10) == []


async def test_race_26_an_end_that_is_not_committed_has_erased_nothing(world: World) -> None:
    [run] = await parked(world)
    async with world.beside() as dying:
        await dying.execute("BEGIN")
        await scopes.end_trees(dying, world.project, [run], scopes.Ending("cancelled", "stop", {}))
    assert (await answer(world, name(run))).run == run
    assert await world.status(run) == "queued"


async def test_race_25_stop_against_answer(world: World, database_url: str) -> None:
    """500 rounds: refused and cancelled, or answered and then cancelled; never resumed after the cancel."""
    rounds = 500
    all_of = await parked(world, rounds)
    other = await Database.open(database_url, pool_size=1)

    async def say(run: UUID) -> Any:
        async with other.connection() as conn:
            return await waits.answer(conn, name(run), "1", "Ann")

    outcomes = set()
    for number, run in enumerate(all_of):
        both = [say(run), world.cancel(run)]
        said, ended = await asyncio.gather(*(both if number % 2 else both[::-1]), return_exceptions=True)
        if not number % 2:
            said, ended = ended, said
        assert [each.run for each in ended] == [run]
        kinds = (await world.kinds(run))[4:]
        if isinstance(said, WaitGone):
            assert kinds == ["node_cancelled", "execution_cancelled"]
        else:
            assert isinstance(said, waits.Answered)
            assert kinds == ["suspension_resolved", "node_cancelled", "execution_cancelled"]
        outcomes.add(type(said))
    assert outcomes == {WaitGone, waits.Answered}
    async with other.connection() as conn:
        assert await runs.claim(conn, world.worker, [world.project], 10) == []
    await other.close()


async def test_parking_claiming_answering_and_dying_all_at_once(world: World, database_url: str) -> None:
    """Owners park and die, people answer, timers fire, stops come: the invariants hold, and nothing hangs."""
    all_of = await world.start(120, nodes=["ask"])
    three = [await Database.open(database_url, pool_size=1) for _ in range(3)]

    async def owner() -> None:
        for run in all_of:
            kinds = ("form", "timer") if run.int % 2 else ("timer",)
            async with three[0].connection() as conn:
                await journal.append_alone(conn, world.worker, suspended(world, run, *kinds, due=PAST))
        async with three[0].connection() as conn:
            await workers.release_dead(conn, [world.worker])

    async def people() -> None:
        for run in all_of:
            async with three[1].connection() as conn:
                try:
                    await waits.answer(conn, name(run), "1", "Ann")
                except Exception as error:
                    assert isinstance(error, AlreadyAnswered | WaitGone) or error.code == "not-found"  # type: ignore[attr-defined]

    async def stopper() -> None:
        for run in all_of[::3]:
            await world.cancel(run)

    await asyncio.gather(owner(), people(), fire(three[2], 10), stopper())
    await fire(three[2], 50)
    for db in three:
        await db.close()
    statuses = {await world.status(run) for run in all_of}
    assert "waiting" not in statuses
    assert {await world.status(run) for run in all_of[::3]} == {"cancelled"}


async def test_a_due_wait_of_a_driven_run_tells_its_owner(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [suspended(world, run, "timer", due=PAST, parks=False)])
        [answered] = (await waits.take_due(conn, 10)).answered
        assert answered.worker == world.worker
        assert await workers.notices(conn, world.worker) == [(world.project, run, "answered")]
        parks = Write(world.project, run, 1, [], '[["ask"]]', parks=True, after=4)
        assert await journal.append(conn, world.worker, [parks]) == {run: Saved(6, False)}
