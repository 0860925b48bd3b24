"""Whom a stop reaches, when that is decided, and how it is carried out."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from uuid import UUID

import pytest

from tests.store.invariants import check_invariants
from tests.store.world import BY_USER, World, blocking, later, tag_in
from weft.errors import RunEnded
from weft.store import projects
from weft.store.pool import Database
from weft.store.runs import endings, runs, scopes, stops
from weft.store.runs.scopes import Ended

ROUNDS = 100


async def test_race_01_age_is_the_order_of_tagging_not_of_starting(world: World) -> None:
    elder, younger = await world.start(2)
    await world.tag(younger, "sender")
    await world.tag(elder, "sender")
    await world.ask(elder, "sender")
    await world.carry_out()
    assert await world.live([elder, younger]) == [elder]


async def test_a_stopped_run_says_who_stopped_it(world: World) -> None:
    victim = await world.start_one(nodes=["draft", "log"])
    await world.tag(victim, "sender")
    newest = await world.start_one()
    await world.tag(newest, "sender")
    await world.ask(newest, "sender")
    [ended] = await world.carry_out()
    assert (ended.run, ended.worker, ended.project) == (victim, world.worker, world.project)
    reason = f"Stopped by execution {newest} (tag sender)"
    cause = {"kind": "execution", "by": str(newest), "tag": "sender"}
    said = {"reason": reason, "cause": cause}
    assert (await world.events(victim))[-3:] == [
        {"kind": "node_cancelled", "node": "draft", **said},
        {"kind": "node_cancelled", "node": "log", **said},
        {"kind": "execution_cancelled", **said},
    ]
    async with world.db.connection() as conn:
        status = await runs.status(conn, world.project, victim)
    assert status is not None
    assert (status.status, status.reason) == ("cancelled", reason)


async def test_race_03_whom_keep_reaches_is_fixed_when_it_is_asked(world: World) -> None:
    before, asker, after = await world.start(3)
    await world.tag(before, "sender")
    await world.ask(asker, "sender")
    await world.tag(after, "sender")
    await world.carry_out()
    assert await world.live([before, asker, after]) == [asker, after]


async def test_race_04_keep_of_a_tagged_run_reaches_only_what_is_below_it(world: World) -> None:
    below, asker, above = await world.start(3)
    for run in (below, asker, above):
        await world.tag(run, "sender")
    [asked] = await world.ask(asker, "sender")
    assert not asked.reaches_self
    await world.carry_out()
    assert await world.live([below, asker, above]) == [asker, above]


async def test_race_05_keep_of_an_untagged_run_with_no_row_reaches_nobody(world: World) -> None:
    asker, later = await world.start(2)
    await world.ask(asker, "sender")
    await world.tag(later, "sender")
    await world.tag(asker, "sender")
    await world.carry_out()
    assert await world.live([asker, later]) == [asker, later]


async def test_race_09_and_10_an_ask_that_is_repeated_is_the_first_one(world: World) -> None:
    """The body runs again from the top: it tags on its old place, and its ask keeps its old reach."""
    asker, newer = await world.start(2)
    await world.tag(asker, "sender")
    first = await world.ask(asker, "sender")
    await world.carry_out()
    await world.tag(newer, "sender")
    await world.tag(asker, "sender")
    assert await world.ask(asker, "sender") == first
    assert await world.carry_out() == []
    assert await world.live([asker, newer]) == [asker, newer]


async def test_an_untagged_ask_that_is_repeated_does_not_reach_further(world: World) -> None:
    old, asker, newer = await world.start(3)
    await world.tag(old, "sender")
    first = await world.ask(asker, "sender")
    await world.tag(newer, "sender")
    assert await world.ask(asker, "sender") == first
    await world.carry_out()
    assert await world.ask(asker, "sender") == first
    assert await world.carry_out() == []
    assert await world.live([old, asker, newer]) == [asker, newer]


async def test_race_14_include_reaches_the_asker_only_if_it_carries_the_tag(world: World) -> None:
    one, two, asker = await world.start(3)
    await world.tag(one, "sender")
    [asked] = await world.ask(asker, "sender", include=True)
    assert not asked.reaches_self
    # Tagging itself afterwards does not bring the asker into its own stop's reach; the call has returned by then.
    await world.tag(asker, "sender")
    await world.tag(two, "sender")
    await world.carry_out()
    assert await world.live([one, two, asker]) == [asker]
    [again] = await world.ask(asker, "sender", include=True, call=1)
    assert again.reaches_self
    await world.carry_out()
    assert await world.status(asker) == "cancelled"


async def test_an_include_is_bounded_by_its_first_carry_out(world: World) -> None:
    old, asker, newer = await world.start(3)
    await world.tag(old, "sender")
    await world.ask(asker, "sender", include=True)
    async with world.db.connection() as conn:
        [stop] = await stops.take_due(conn, None, 10)
    assert stop.cutoff is None
    await stops.carry_out(world.db, stop)
    await world.tag(newer, "sender")
    await stops.carry_out(world.db, stop)
    assert await world.live([old, asker, newer]) == [asker, newer]


async def test_race_16_a_stop_stays_in_its_project_and_matches_the_whole_tag(world: World) -> None:
    async with world.db.connection() as conn:
        elsewhere = await projects.ensure(conn, "other", "Other")
    [foreign] = await world.start(project=elsewhere)
    longer, same, asker = await world.start(3)
    await world.tag(foreign, "user_7", project=elsewhere)
    await world.tag(longer, "user_77")
    await world.tag(same, "user_7")
    await world.ask(asker, "user_7", include=True)
    assert [ended.run for ended in await world.carry_out()] == [same]
    report = await stops.end_tagged(world.db, world.project, "user_7", "Cancelled by user", {"kind": "user"})
    assert report.ended == []
    async with world.db.connection() as conn:
        assert await conn.fetchval("SELECT status FROM runs WHERE id = $1", foreign) == "running"


async def test_race_17_one_run_that_cannot_be_ended_spares_no_other(world: World, database_url: str) -> None:
    victims = await world.start(7)
    for run in victims:
        await world.tag(run, "sender")
    asker = await world.start_one()
    await world.ask(asker, "sender")
    async with world.db.connection() as conn:
        await conn.execute(
            f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE 'this one cannot be ended'; END $$;
                CREATE TRIGGER refuse BEFORE UPDATE OF status ON runs FOR EACH ROW
                WHEN (OLD.id = '{victims[3]}') EXECUTE FUNCTION refuse()"""
        )
    ended = {each.run for each in await world.carry_out()}
    assert ended == {*victims} - {victims[3]}
    async with world.db.connection() as conn:
        await conn.execute("DROP TRIGGER refuse ON runs")
        assert await stops.take_due(conn, None, 10) == [], "it comes due again after a pause, not at once"
    async with later(database_url, timedelta(minutes=1)) as db:
        async with db.connection() as conn:
            [again] = await stops.take_due(conn, None, 10)
        assert again.attempts == 2
        assert [each.run for each in await stops.carry_out(db, again)] == [victims[3]]
        async with db.connection() as conn:
            assert await conn.fetchval("SELECT state FROM stops") == "done"


async def test_race_18_two_asks_of_one_body_are_two_stops(world: World) -> None:
    one, two, asker = await world.start(3)
    await world.tag(one, "sender")
    [first] = await world.ask(asker, "sender", call=0)
    await world.carry_out()
    await world.tag(two, "sender")
    [second] = await world.ask(asker, "sender", call=1)
    assert first.id != second.id
    await world.carry_out()
    assert await world.live([one, two, asker]) == [asker]


async def test_stops_of_one_call_come_back_in_its_order(world: World) -> None:
    run = await world.start_one()
    await world.tag(run, "b")
    async with world.db.transaction() as conn:
        asked = await stops.ask(conn, world.fence(run), "n", "[1]", 3, [("c", True), ("b", True), ("a", False)])
    assert [each.reaches_self for each in asked] == [False, True, False]
    assert len({each.id for each in asked}) == 3


async def test_a_stop_that_was_asked_is_carried_out_though_its_asker_has_ended(world: World) -> None:
    victim, asker = await world.start(2)
    await world.tag(victim, "sender")
    await world.ask(asker, "sender")
    await world.finish(asker)
    await world.carry_out()
    assert await world.status(victim) == "cancelled"


async def test_a_stop_that_was_taken_comes_due_again_when_its_taker_dies(world: World, database_url: str) -> None:
    victim, asker = await world.start(2)
    await world.tag(victim, "sender")
    await world.ask(asker, "sender")
    async with world.db.connection() as conn:
        assert await stops.take_due(conn, [world.project + 1], 10) == []
        assert len(await stops.take_due(conn, [world.project], 10)) == 1
        assert await stops.take_due(conn, [world.project], 10) == []
    async with later(database_url, stops.KEPT * 2) as db:
        async with db.connection() as conn:
            [stop] = await stops.take_due(conn, [world.project], 10)
        await stops.carry_out(db, stop)
    assert await world.status(victim) == "cancelled"


async def test_race_60_two_processes_that_carry_out_one_stop_write_nothing_twice(
    world: World, database_url: str
) -> None:
    victims = await world.start(40, nodes=["draft"])
    for run in victims:
        await world.tag(run, "sender")
    asker = await world.start_one()
    await world.ask(asker, "sender")
    other = await Database.open(database_url, pool_size=1)
    try:
        async with world.db.connection() as conn:
            [stop] = await stops.take_due(conn, None, 10)
        both = await asyncio.gather(stops.carry_out(world.db, stop), stops.carry_out(other, stop))
    finally:
        await other.close()
    assert sorted(each.run for ended in both for each in ended) == sorted(victims)
    for run in victims:
        assert await world.kinds(run) == [
            "execution_started",
            "node_started",
            "execution_tagged",
            "node_cancelled",
            "execution_cancelled",
        ]


async def test_race_60_the_second_waits_and_then_finds_nothing(world: World) -> None:
    run = await world.start_one(nodes=["draft"])
    async with world.beside() as one, world.beside() as two, world.beside() as watch:
        transaction = one.transaction()
        await transaction.start()
        assert len(await scopes.end_trees(one, world.project, [run], BY_USER)) == 1

        async def second() -> list[Ended]:
            async with two.transaction():
                return await scopes.end_trees(two, world.project, [run], BY_USER)

        async with blocking(watch, two, second()) as waiting:
            await transaction.commit()
            assert await waiting == []


@pytest.mark.parametrize(("together", "rounds"), [(2, ROUNDS), (5, ROUNDS // 3), (20, 10)])
async def test_race_07_and_08_and_fault_b83_of_runs_that_tag_and_stop_together_the_last_numbered_survives(
    world: World, database_url: str, together: int, rounds: int
) -> None:
    """Several tags a call, in different orders, with pauses at every await and before every commit."""
    db = await Database.open(database_url, pool_size=5)
    choose = random.Random(together)
    survivors: list[UUID] = []

    async def pause() -> None:
        await asyncio.sleep(choose.choice((0, 0, 0.001, 0.003)))

    async def message(run: UUID, names: list[str]) -> None:
        try:
            await pause()
            async with db.transaction() as conn:
                await tag_in(conn, world.fence(run), *names)
                await pause()
            await pause()
            async with db.transaction() as conn:
                await stops.ask(conn, world.fence(run), "stop", "[]", 0, [(name, False) for name in names])
                await pause()
        except RunEnded:
            return
        await pause()
        async with db.connection() as conn:
            due = await stops.take_due(conn, None, 10)
        for stop in due:
            await stops.carry_out(db, stop)

    try:
        for number in range(rounds):
            group = await world.start(together)
            names = [f"{name}{number}" for name in "abc"]
            await asyncio.gather(*(message(run, choose.sample(names, 3)) for run in group))
            await world.carry_out()
            left = await world.live(group)
            async with db.connection() as conn:
                last = await conn.fetchval("SELECT run FROM tags WHERE tag = $1 ORDER BY number DESC LIMIT 1", names[0])
            assert left == [last]
            survivors += left
        async with db.connection() as conn:
            await check_invariants(conn)
            name = await conn.fetchval("SELECT current_database()")
            deadlocks = await conn.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", name)
            assert deadlocks == 0
            wrong = await conn.fetch(
                """SELECT v.id FROM runs AS v JOIN tags AS mine ON mine.run = v.id
                   JOIN tags AS theirs ON theirs.tag = mine.tag AND theirs.run = (v.cause ->> 'by')::uuid
                   WHERE v.status = 'cancelled' AND theirs.number <= mine.number"""
            )
            assert not wrong, "every victim names a run that tagged later"
    finally:
        await db.close()
    assert len(survivors) == rounds


async def test_ten_thousand_queued_runs_end_by_one_stop_with_no_worker_alive(world: World) -> None:
    """In chunks, so the statements are a handful a thousand, whatever the runs are."""
    count = 10_000
    async with world.db.connection() as conn:
        for _ in range(count // 1000):
            await runs.start(conn, world.project, None, [world.new()] * 1000)
        await conn.execute(
            "INSERT INTO tags (project, tag, run, number)"
            " SELECT project, 'sender', id, nextval('tag_numbers') FROM runs ORDER BY id"
        )
        assert await stops.count_tagged(conn, world.project, "sender") == count
    asker = await world.start_one()
    await world.ask(asker, "sender")
    statements: list[str] = []
    async with world.db.connection() as conn:
        conn.add_query_logger(lambda record: statements.append(record.query))
        [stop] = await stops.take_due(conn, None, 10)
    ended = await stops.carry_out(world.db, stop)
    assert len({each.run for each in ended}) == count
    assert 0 < len(statements) < 10 * (count // endings.CHUNK) + 10
    async with world.db.connection() as conn:
        assert await conn.fetchval("SELECT count(*) FROM ready") == 1
        assert await stops.count_tagged(conn, world.project, "sender") == 0


async def test_a_person_stops_what_is_tagged_so_far(world: World) -> None:
    one, two, bare = await world.start(3, queued=True)
    async with world.db.connection() as conn:
        claimed = await runs.claim(conn, world.worker, [world.project], 3)
    assert len(claimed) == 3
    await world.tag(one, "sender")
    await world.tag(two, "sender")
    report = await stops.end_tagged(
        world.db, world.project, "sender", "Cancelled by user (tag sender)", {"kind": "user", "tag": "sender"}
    )
    assert [each.run for each in report.ended] == [one, two]
    assert report.failed == []
    assert await world.live([one, two, bare]) == [bare]
    again = await endings.end_runs(world.db, world.project, [one, bare], "Cancelled by user", {"kind": "user"})
    assert [each.run for each in again.ended] == [bare]
    assert (await world.events(one))[-1]["reason"] == "Cancelled by user (tag sender)"


async def test_a_stop_of_a_project_that_nobody_serves_here_keeps_nobody_awake(world: World) -> None:
    async with world.db.connection() as conn:
        other = await projects.ensure(conn, "other", "Other")
    theirs = await world.start_one(project=other)
    async with world.db.transaction() as conn:
        await stops.ask(conn, world.fence(theirs, project=other), "stop", "[]", 0, [("sender", False)])
    async with world.db.connection() as conn:
        assert await stops.take_due(conn, [world.project], 10) == []
        assert await scopes.next_due(conn, [world.project]) is None
        for asked in (None, [world.project, other]):
            left = await scopes.next_due(conn, asked)
            assert left is not None
            assert left <= timedelta(0)
