"""The reads for people, on a real database: pages of runs, pieces of ids, a run's events in order."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from uuid import UUID

import pytest

from weft import clock
from weft.errors import Conflict, NotFound
from weft.flow.events import (
    Event,
    ExecutionCompleted,
    ExecutionStarted,
    LogLine,
    NodeCompleted,
    NodeStarted,
    encode,
)
from weft.service import listing
from weft.service.ids import find_run, find_runs, short
from weft.service.listing import Cursor
from weft.store import projects
from weft.store.pool import Database
from weft.store.runs import journal, programs, runs, scopes, workers
from weft.store.runs.journal import Write
from weft.store.runs.runs import NewRun
from weft.store.runs.scopes import Ending
from weft.store.runs.tags import start_tagged

HASH = "0" * 64


class Bench:
    """A database with two projects, and a hand on its runs."""

    def __init__(self, database: Database, worker: UUID, numbers: dict[str, int]) -> None:
        self.database = database
        self.worker = worker
        self.numbers = numbers

    async def start(self, project: str = "one", *events: Event, tags: list[str] | None = None) -> UUID:
        first: list[Event] = [ExecutionStarted(project, HASH, "main.weft"), *events]
        new = NewRun(HASH, "main.weft", [encode(event) for event in first])
        async with self.database.transaction() as connection:
            if tags:
                return await start_tagged(connection, self.numbers[project], self.worker, new, tags)
            [run] = await runs.start(connection, self.numbers[project], self.worker, [new])
            return run

    async def complete(self, run: UUID, *events: Event) -> None:
        ended = [*events, ExecutionCompleted()]
        write = Write(self.numbers["one"], run, 1, [encode(event) for event in ended], "[]", "completed")
        async with self.database.connection() as connection:
            assert await journal.append_alone(connection, self.worker, write) is not None

    async def cancel(self, project: str, run: UUID) -> None:
        async with self.database.transaction() as connection:
            await scopes.end_trees(connection, self.numbers[project], [run], Ending("cancelled", "because"))

    async def ids(self, **filters: object) -> list[UUID]:
        return [row.run for row in await listing.executions(self.database, **filters)]  # type: ignore[arg-type]


@pytest.fixture
async def bench(database_url: str):
    async with contextlib.AsyncExitStack() as stack:
        database = await Database.open(database_url, pool_size=1)
        stack.push_async_callback(database.close)
        async with database.connection() as connection:
            numbers = {name: await projects.ensure(connection, f"{name}-key", name) for name in ("one", "two")}
            worker = await workers.register(
                connection, host="here", pid=1, projects=list(numbers.values()), lease=timedelta(seconds=60)
            )
            for number in numbers.values():
                await programs.put(connection, number, HASH, "{}")
        yield Bench(database, worker, numbers)


async def test_newest_first_across_projects_and_by_page(bench: Bench):
    started = [await bench.start(project) for project in ("one", "two", "one", "two", "one")]
    newest = started[::-1]
    assert await bench.ids() == newest
    assert await bench.ids(limit=2, offset=1) == newest[1:3]
    assert await bench.ids(project="two") == [newest[1], newest[3]]
    assert await bench.ids(project="two-key") == [newest[1], newest[3]]
    with pytest.raises(NotFound, match="no project 'three'"):
        await bench.ids(project="three")


async def test_by_status(bench: Bench):
    live, cancelled, completed = [await bench.start() for _ in range(3)]
    await bench.cancel("one", cancelled)
    await bench.complete(completed)
    assert await bench.ids(statuses=["running"]) == [live]
    assert await bench.ids(statuses=["running", "queued"], project="one") == [live]
    assert await bench.ids(statuses=["cancelled"]) == [cancelled]
    assert await bench.ids(statuses=["completed", "running"]) == [completed, live]
    assert await bench.ids(statuses=["failed"]) == []


async def test_race_64_tags_stand_in_the_order_claimed(bench: Bench):
    run = await bench.start("one", tags=["zebra", "apple", "mango"])
    [row] = await listing.executions(bench.database)
    assert row.run == run
    assert row.tags == ("zebra", "apple", "mango")


async def test_by_tags_all_of_them(bench: Bench):
    both = await bench.start("one", tags=["a", "b"])
    other = await bench.start("two", tags=["a"])
    await bench.start("one", tags=["b"])
    await bench.start("one")
    assert await bench.ids(tags=["a"]) == [other, both]
    assert await bench.ids(tags=["b", "a"]) == [both]
    assert await bench.ids(tags=["a"], project="one", statuses=["running"]) == [both]
    assert await bench.ids(tags=["c"]) == []
    assert await bench.ids(tags=["a"], limit=1, offset=1) == [both]


async def test_since(bench: Bench):
    run = await bench.start()
    assert await bench.ids(since=clock.now() - timedelta(minutes=1)) == [run]
    assert await bench.ids(since=clock.now() + timedelta(minutes=1)) == []


async def test_by_node(bench: Bench):
    reached = await bench.start("one", NodeStarted("draft"))
    await bench.start("one", NodeStarted("other"))
    assert await bench.ids(node="draft") == [reached]
    assert await bench.ids(node="draft", statuses=["running"]) == [reached]
    assert await bench.ids(node="draft", tags=["a"]) == []


async def test_a_run_by_pieces_of_its_id(bench: Bench):
    run = await bench.start("two")
    for piece in (str(run), run.hex, str(run).upper(), short(run), str(run)[-4:], str(run)[:30], run.hex[-20:]):
        assert (await find_run(bench.database, piece)).run == run
    with pytest.raises(NotFound, match="begins or ends with 00000000"):
        await find_run(bench.database, "00000000")
    with pytest.raises(NotFound, match="no run has the id"):
        await find_run(bench.database, "00000000-0000-7000-8000-000000000000")


async def test_a_piece_that_several_have_lists_them(bench: Bench):
    mine = [await bench.start("one"), await bench.start("two")]
    with pytest.raises(Conflict) as refused:
        await find_run(bench.database, str(mine[0])[:8])
    assert all(str(run) in refused.value.message for run in mine)
    many = [await bench.start() for _ in range(20)]
    with pytest.raises(Conflict) as refused:
        await find_run(bench.database, str(many[0])[:8])
    assert refused.value.message.endswith("…")


async def test_several_runs_at_once_each_once_in_order(bench: Bench):
    first, second = await bench.start(), await bench.start("two")
    found = await find_runs(bench.database, [str(second), short(first), str(first)])
    assert [row.run for row in found] == [second, first]


async def _seen(cursor: Cursor) -> list[tuple[int | None, str]]:
    return [(stored.seq, stored.event["kind"]) async for stored in cursor.news()]


async def test_a_cursor_goes_on_where_it_stopped_and_ends_with_the_terminal_event(bench: Bench):
    run = await bench.start("one", NodeStarted("n"))
    cursor = Cursor(bench.database, await find_run(bench.database, str(run)))
    assert await _seen(cursor) == [(1, "execution_started"), (2, "node_started")]
    assert await _seen(cursor) == []
    assert not cursor.done
    await bench.complete(run, NodeCompleted("n"))
    async with bench.database.connection() as connection:
        late = encode(LogLine("n", (), "warning", "too late"))
        await journal.aftermath(connection, bench.numbers["one"], run, late)
    assert await _seen(cursor) == [(3, "node_completed"), (None, "log_line"), (4, "execution_completed")]
    assert cursor.done
    assert await _seen(cursor) == []


async def test_a_journal_of_many_pages_is_read_whole(bench: Bench, monkeypatch):
    monkeypatch.setattr(listing, "PAGE", 3)
    run = await bench.start()
    for number in range(10):
        write = Write(bench.numbers["one"], run, 1, [encode(LogLine("n", (), "info", str(number)))] * 2, "[]")
        async with bench.database.connection() as connection:
            await journal.append_alone(connection, bench.worker, write)
    seen = await _seen(Cursor(bench.database, await find_run(bench.database, str(run))))
    assert [seq for seq, _ in seen] == list(range(1, 22))


async def test_workers_alive_of_a_project(bench: Bench):
    [number] = await listing.workers_of(bench.database, bench.numbers["one"])
    async with bench.database.connection() as connection:
        await workers.leave(connection, bench.worker)
    assert number > 0
    assert await listing.workers_of(bench.database, bench.numbers["one"]) == []
