"""A stop by tag reaches runs that wait: ten thousand of them in a handful of statements."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.store.parking import answer, name, park, parked, take_due
from tests.store.world import World, later, tag_in
from weft.errors import WaitGone
from weft.store.runs import endings, scopes, stops, waits

MANY = 10_000


async def tagged(world: World, tag: str, runs: list[UUID]) -> None:
    """Tags runs that wait, which no worker of now can do."""
    async with world.db.connection() as conn:
        await conn.execute(
            "INSERT INTO tags (project, number, run, tag) SELECT $1, nextval('tag_numbers'), run, $3"
            " FROM unnest($2::uuid[]) AS run",
            world.project,
            runs,
            tag,
        )


async def test_one_stop_ends_ten_thousand_parked_runs_in_a_handful_of_statements(world: World) -> None:
    runs = [run for _ in range(10) for run in await parked(world, MANY // 10)]
    await tagged(world, "sender", runs)
    asker = await world.start_one()
    await world.ask(asker, "sender")
    statements: list[str] = []

    def heard(record: Any) -> None:
        statements.append(record.query)

    async with world.db.connection() as conn:
        conn.add_query_logger(heard)
    ended = await world.carry_out()
    async with world.db.connection() as conn:
        conn.remove_query_logger(heard)
        assert await conn.fetchval("SELECT count(*) FROM waits") == 0
        assert await conn.fetchval("SELECT count(*) FROM runs WHERE status = 'cancelled'") == MANY
    assert {each.run for each in ended} == set(runs)
    assert {each.worker for each in ended} == {None}
    chunks = MANY // endings.CHUNK
    assert 0 < len(statements) <= 10 * (chunks + 1)
    assert await world.live([asker]) == [asker]
    with pytest.raises(WaitGone) as gone:
        await answer(world, name(runs[7]))
    assert gone.value.reason == f"Stopped by execution {asker} (tag sender)"
    assert gone.value.cause == {"kind": "execution", "by": str(asker), "tag": "sender"}


async def test_a_stop_and_an_answer_that_came_before_it(world: World) -> None:
    """The one that was answered is queued, and ended like the rest."""
    runs = await parked(world, 3)
    await tagged(world, "sender", runs)
    await answer(world, name(runs[1]))
    report = await stops.end_tagged(world.db, world.project, "sender", "Cancelled by user", {"kind": "user"})
    assert {each.run for each in report.ended} == set(runs)
    assert (await world.kinds(runs[1]))[-3:] == ["suspension_resolved", "node_cancelled", "execution_cancelled"]


async def test_a_parked_run_keeps_its_place_in_the_order_of_its_tag(world: World) -> None:
    older, newer = await world.start(2, nodes=["ask"])
    for run in (older, newer):
        async with world.db.transaction() as conn:
            await tag_in(conn, world.fence(run), "sender")
    await world.ask(newer, "sender")
    await park(world, older, newer, after=3)
    assert [each.run for each in await world.carry_out()] == [older]
    assert await world.status(newer) == "waiting"


async def test_a_deadline_ends_a_parked_run(world: World, database_url: str) -> None:
    run = await world.start_one(nodes=["ask"], deadline=timedelta(days=2))
    await park(world, run)
    assert (await take_due(world)).answered == []
    async with later(database_url, timedelta(days=3)) as db, db.connection() as conn:
        assert await scopes.due_deadlines(conn, 10) == [(world.project, run)]
        ending = scopes.Ending("cancelled", "Deadline reached", {"kind": "deadline"})
        async with conn.transaction():
            await scopes.end_trees(conn, world.project, [run], ending)
        assert await waits.of_run(conn, world.project, run) == []
