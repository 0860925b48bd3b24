"""A database that an older weft made is brought up to date, and what was under way in it goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest_asyncio

from tests.store.invariants import check_invariants
from tests.store.parking import name, suspended
from tests.store.world import BY_USER, LEASE, World
from weft.flow.events import ExecutionCompleted, NodeCompleted, NodeStarted, PortEmitted, decode, encode
from weft.lang.graph import Program
from weft.store import projects
from weft.store.migrate import migrate, migrations
from weft.store.pool import Database
from weft.store.runs import journal, programs, runs, scopes, tags, waits, workers
from weft.store.runs.journal import Saved, Write

DUMP = Path(__file__).with_name("under_0001.sql")

HALF_RUN = UUID("01a22e9b-c9db-7747-a041-7d8fd3122f93")
QUEUED = UUID("01a22e9b-cede-7391-9b2b-106adb9eff61")
DEAD_WORKER = UUID("18f2c2f8-9813-427f-ae62-805de9347ce9")

SCHEMA = """
SELECT 'column' AS what, table_name || '.' || column_name AS name,
       concat_ws(' ', data_type, is_nullable, column_default, ordinal_position) AS is
FROM information_schema.columns WHERE table_schema = 'weft' AND table_name !~ '^journal_[0-9]'
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'weft' AND tablename !~ '^journal_[0-9]'
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'weft'::regnamespace AND conrelid::regclass::text !~ 'journal_[0-9]'
UNION ALL
SELECT 'function', proname, md5(prosrc) FROM pg_proc WHERE pronamespace = 'weft'::regnamespace
ORDER BY 1, 2
"""


@pytest_asyncio.fixture
async def old(empty_database_url: str) -> AsyncIterator[World]:
    """The old database, migrated, with a worker of now."""
    loading = await asyncpg.connect(empty_database_url)
    await loading.execute(DUMP.read_text("utf-8"))
    await loading.close()
    db = await Database.open(empty_database_url, pool_size=1)
    async with db.connection() as conn:
        missing = await migrate(conn)
        assert missing == [each.name for each in migrations()][1:]
        project = await projects.find(conn, "weft-test-upgrade")
        assert project is not None
        worker = await workers.register(conn, host="here", pid=1, projects=[project], lease=LEASE)
    yield World(db, project, worker)
    async with db.connection() as conn:
        await check_invariants(conn)
    await db.close()


async def test_the_upgraded_schema_is_that_of_a_new_database(old: World, new_database: Callable[..., str]) -> None:
    async def schema(conn: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await conn.fetch(SCHEMA)]

    fresh = await Database.open(new_database(), pool_size=1)
    async with old.db.connection() as ours, fresh.connection() as theirs:
        assert await schema(ours) == await schema(theirs)
    await fresh.close()


async def test_what_was_queued_is_claimed_and_goes_through_a_wait_to_its_end(old: World) -> None:
    async with old.db.connection() as conn:
        [claimed] = await runs.claim(conn, old.worker, [old.project], 10)
        assert (claimed.run, claimed.lease, claimed.next_seq) == (QUEUED, 1, 3)
        text = await programs.get(conn, old.project, claimed.program)
        assert text is not None
        assert [node.id for node in Program.from_text(text).nodes] == ["name", "early", "work", "show"]
        started = old.write(QUEUED, NodeStarted("ask"), open_firings='[["ask"]]')
        await journal.append(conn, old.worker, [started])
        parks = suspended(old, QUEUED, after=3)
        assert await journal.append(conn, old.worker, [parks]) == {QUEUED: Saved(6, True)}
        assert (await waits.answer(conn, name(QUEUED), "1", "Ann")).worker is None
        [again] = await runs.claim(conn, old.worker, [old.project], 10)
        last = [encode(NodeCompleted("ask")), encode(ExecutionCompleted())]
        write = Write(old.project, QUEUED, again.lease, last, "[]", "completed")
        assert await journal.append(conn, old.worker, [write]) == {QUEUED: Saved(9, False)}


async def test_what_a_dead_worker_left_is_taken_over_with_all_that_it_had_saved(old: World) -> None:
    async with old.db.connection() as conn:
        freed = await workers.release_dead(conn, [DEAD_WORKER])
        assert [run for _, run, _ in freed] == [HALF_RUN]
        claimed = {each.run: each for each in await runs.claim(conn, old.worker, [old.project], 10)}
        assert (claimed[HALF_RUN].lease, claimed[HALF_RUN].next_seq) == (2, 12)
        assert await tags.of_run(conn, old.project, HALF_RUN) == ["half"]
        rows = await journal.read(conn, old.project, HALF_RUN)
        events = [decode(event) for row in rows for event in json.loads(row.events)]
        assert len(events) == 11
        assert events[0].kind == "execution_started"
        assert events[-1].kind == "log_line"
        rest = [PortEmitted("work", (), 0, "value", "world"), NodeCompleted("work"), ExecutionCompleted()]
        write = Write(old.project, HALF_RUN, 2, [encode(event) for event in rest], "[]", "completed")
        assert await journal.append(conn, old.worker, [write]) == {HALF_RUN: Saved(15, False)}
        stale = Write(old.project, HALF_RUN, 1, ["{}"], "[]")
        assert await journal.append(conn, DEAD_WORKER, [stale]) == {}


async def test_what_was_under_way_can_be_stopped(old: World) -> None:
    async with old.db.transaction() as conn:
        ended = await scopes.end_trees(conn, old.project, [HALF_RUN, QUEUED], BY_USER)
    assert {each.run: each.worker for each in ended} == {HALF_RUN: DEAD_WORKER, QUEUED: None}
    async with old.db.connection() as conn:
        told = await conn.fetchval("SELECT kind FROM notices")
    assert told == "ended"
    assert (await old.kinds(HALF_RUN))[-2:] == ["node_cancelled", "execution_cancelled"]


def test_the_first_migration_is_the_one_that_made_it() -> None:
    """A file that a database has seen is never edited."""
    assert f"VALUES (1, 'runs', '{migrations()[0].checksum}'" in DUMP.read_text("utf-8")
