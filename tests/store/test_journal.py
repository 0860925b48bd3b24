"""The group commit: who may write, how numbers are given, what is read back."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from tests.store.world import LogLine, NodeCompleted, NodeStarted, World, blocking
from weft.flow.events import ExecutionCompleted, ExecutionFailed, encode
from weft.store.runs import journal, runs
from weft.store.runs.journal import Write
from weft.store.runs.packing import ROW_LIMIT


def line(text: str = "x") -> LogLine:
    return LogLine("node", (), "info", text)


async def test_one_and_many_and_ending_writes_number_alike(world: World) -> None:
    one, two, three = await world.start(3)
    assert await world.append(world.write(one, line(), line())) == {one: 4}
    assert await world.append(world.write(one, line()), world.write(two, line(), line())) == {one: 5, two: 4}
    assert await world.append(world.last_write(one, line()), world.write(three, line())) == {one: 7, three: 3}
    assert await world.append(world.last_write(two)) == {two: 5}
    assert await world.kinds(one) == ["execution_started", *["log_line"] * 4, "execution_completed"]
    assert [await world.status(run) for run in (one, two, three)] == ["completed", "completed", "running"]


@pytest.mark.parametrize("companions", [0, 1, "ending"])
async def test_a_write_is_refused_unless_run_worker_and_lease_are_current(world: World, companions: int | str) -> None:
    run, other, ended = await world.start(3)
    await world.finish(ended)
    beside = {0: [], 1: [world.write(other, line())], "ending": [world.last_write(other)]}[companions]
    async with world.db.connection() as conn:
        for worker, refused in [
            (uuid4(), world.write(run, line())),
            (world.worker, world.write(run, line(), lease=2)),
            (world.worker, world.write(ended, line())),
            (world.worker, world.write(uuid4(), line())),
        ]:
            written = await journal.append(conn, worker, [refused, *beside])
            assert refused.run not in written
            assert await journal.append_alone(conn, worker, refused) is None
    assert await world.kinds(run) == ["execution_started"]


async def test_a_failed_run_keeps_its_error(world: World) -> None:
    run = await world.start_one()
    events = [encode(ExecutionFailed("no such key"))]
    assert await world.append(Write(world.project, run, 1, events, "[]", "failed", "no such key"))
    async with world.db.connection() as conn:
        status = await runs.status(conn, world.project, run)
    assert status is not None
    assert (status.status, status.error, status.next_seq) == ("failed", "no such key", 3)


async def test_a_long_write_is_cut_into_rows_and_read_back_in_order(world: World) -> None:
    run, other = await world.start(2)
    texts = [letter * (ROW_LIMIT // 3) for letter in "abcdefg"]
    huge = "h" * (3 * ROW_LIMIT)
    events = [line(text) for text in [*texts, huge, "last"]]
    assert await world.append(world.write(run, *events), world.write(other, line())) == {run: 11, other: 3}
    assert [event.get("text") for event in await world.events(run)][1:] == [*texts, huge, "last"]
    async with world.db.connection() as conn:
        rows = await journal.read(conn, world.project, run)
    assert [(row.first, row.count) for row in rows] == [(1, 1), (2, 2), (4, 2), (6, 2), (8, 1), (9, 1), (10, 1)]


async def test_reading_goes_on_after_any_number(world: World) -> None:
    run = await world.start_one()
    await world.append(world.write(run, line("2"), line("3"), line("4")))
    await world.append(world.write(run, line("5")))
    async with world.db.connection() as conn:
        seen = {after: [row.first for row in await journal.read(conn, world.project, run, after)] for after in range(7)}
    assert seen == {0: [1, 2, 5], 1: [2, 5], 2: [2, 5], 3: [2, 5], 4: [5], 5: [], 6: []}


async def test_open_firings_are_what_a_cancel_closes(world: World) -> None:
    run = await world.start_one(nodes=["a"])
    started = [NodeStarted("b", (0, 2)), NodeStarted("a", (1,)), NodeCompleted("a")]
    await world.append(world.write(run, *started, open_firings='[["b",0,2],["a",1]]'))
    await world.cancel(run)
    ended = [event for event in await world.events(run) if event["kind"] == "node_cancelled"]
    assert [(event["node"], event["frames"]) for event in ended] == [("b", [0, 2]), ("a", [1])]


async def test_values_come_back_as_they_were_written(world: World) -> None:
    run = await world.start_one()
    text = '{"kind":"log_line","b":-0.0,"a":1.50,"é":"\\u00e9 ☃ \\/","b":2}'
    await world.append(Write(world.project, run, 1, [text], "[]"))
    async with world.db.connection() as conn:
        [row] = await journal.read(conn, world.project, run, 1)
    assert row.events == f"[{text}]"


async def test_a_batch_waits_for_nobody(world: World) -> None:
    """A run that somebody holds is left out at once, and the rest of the batch is written."""
    held, free = await world.start(2)
    async with world.holding() as holder:
        await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", held)
        assert await world.append(world.write(held, line()), world.write(free, line())) == {free: 3}
        assert await world.append(world.write(held, line())) == {}
        assert await world.append(world.last_write(held), world.last_write(free)) == {free: 4}
    assert await world.append(world.last_write(held)) == {held: 3}


async def test_race_57_reading_events_after_a_number_misses_none_that_commits_late(world: World) -> None:
    run = await world.start_one()
    async with world.beside() as late, world.beside() as waiter, world.beside() as reader:
        transaction = late.transaction()
        await transaction.start()
        assert await journal.append(late, world.worker, [world.write(run, line("late"))]) == {run: (3, False)}
        write = world.write(run, line("next"))
        async with blocking(reader, waiter, journal.append_alone(waiter, world.worker, write)) as waiting:
            assert await journal.read(reader, world.project, run, 1) == []
            await transaction.commit()
            assert await waiting == (4, False)
        rows = await journal.read(reader, world.project, run, 1)
    assert [json.loads(row.events)[0]["text"] for row in rows] == ["late", "next"]


async def test_append_alone_tries_again_when_a_lock_is_not_had_in_time(world: World) -> None:
    run = await world.start_one()
    async with world.beside() as holder, world.beside() as waiter, world.beside() as watch:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", run)
        await waiter.execute("SET lock_timeout = '20ms'")
        query = "SELECT xact_start FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
        work = journal.append_alone(waiter, world.worker, world.write(run, line()))
        async with blocking(watch, waiter, work) as task:
            starts = set()
            while len(starts) < 3:
                starts.add(await watch.fetchval(query, waiter.get_server_pid()))
            await transaction.rollback()
            assert await task == (3, False)


async def test_a_terminal_event_is_the_last_of_its_batch(world: World) -> None:
    """A run that ends in a batch is gone from the ready list, and its next write is refused."""
    run = await world.start_one()
    await world.append(world.last_write(run))
    assert await world.append(Write(world.project, run, 1, [encode(ExecutionCompleted())], "[]", "completed")) == {}
    async with world.db.connection() as conn:
        assert await conn.fetchval("SELECT count(*) FROM ready") == 0
        await journal.aftermath(conn, world.project, run, encode(line("late")))
        assert await conn.fetchval("SELECT event ->> 'text' FROM run_aftermath WHERE run = $1", run) == "late"
