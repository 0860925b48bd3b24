"""Snapshots: what a wake folds, however long the journal is."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

from tests.store.parking import answer, name, park
from tests.store.world import LogLine, World
from weft.store.pool import Connection
from weft.store.runs import runs, snapshots
from weft.store.runs.journal import JournalRow
from weft.store.runs.snapshots import Snapshot


async def resumed(conn: Connection, world: World, run: UUID) -> tuple[Snapshot | None, list[JournalRow]]:
    """What a wake of the run folds, asked beside another run of which there is nothing."""
    kept = await snapshots.resume(conn, [(world.project, uuid4()), (world.project, run)])
    return kept[run].snapshot, kept[run].rows


async def test_without_a_snapshot_the_whole_journal_is_read(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        known, rows = await resumed(conn, world, run)
    assert known is None
    assert [(row.first, row.count) for row in rows] == [(1, 2)]


async def test_a_wake_reads_the_snapshot_and_what_came_after_it(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    for _ in range(10):
        await world.append(world.write(run, LogLine("ask", (), "info", "x"), open_firings='[["ask"]]'))
    await park(world, run, after=12)
    fence = world.fence(run)
    async with world.db.connection() as conn:
        assert await snapshots.put(conn, fence, Snapshot(14, '{"x":1}'))
        assert not await snapshots.put(conn, fence, Snapshot(9, '{"x":0}')), "a later one stands"
        assert not await snapshots.put(conn, fence, Snapshot(15, '{"x":2}')), "nothing that is not saved"
        known, rows = await resumed(conn, world, run)
        assert (known, rows) == (Snapshot(14, '{"x":1}'), [])
    await answer(world, name(run), "7")
    async with world.db.connection() as conn:
        known, [row] = await resumed(conn, world, run)
        assert known == Snapshot(14, '{"x":1}')
        assert (row.first, json.loads(row.events)[0]["value"]) == (15, 7)
        await runs.claim(conn, world.worker, [world.project], 1)
        assert not await snapshots.put(conn, fence, Snapshot(15, "{}")), "of an owner of before"
        assert await snapshots.put(conn, world.fence(run, lease=2), Snapshot(15, '{"x":3}'))
        known, rows = await resumed(conn, world, run)
        assert (known, rows) == (Snapshot(15, '{"x":3}'), [])


async def test_a_snapshot_in_the_middle_of_a_commit_reads_the_row_that_holds_the_next_event(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    lines = [LogLine("ask", (), "info", str(number)) for number in range(5)]
    await world.append(world.write(run, *lines, open_firings='[["ask"]]'))
    async with world.db.connection() as conn:
        await snapshots.put(conn, world.fence(run), Snapshot(4, "{}"))
        _, rows = await resumed(conn, world, run)
    assert [(row.first, row.count) for row in rows] == [(3, 5)]


async def test_an_ended_run_takes_no_snapshot(world: World) -> None:
    run = await world.start_one()
    await world.cancel(run)
    async with world.db.connection() as conn:
        assert not await snapshots.put(conn, world.fence(run), Snapshot(1, "{}"))
