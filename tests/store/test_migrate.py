"""Bringing a database up to date: once, by any number of processes, and never backwards."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from tests.store.world import blocked
from weft.errors import SchemaTooNew
from weft.store.migrate import migrate, migrations
from weft.store.pool import CONNECTION_LOST, Database

PROGRAM = """
import asyncio, sys
from weft.store.migrate import migrate
from weft.store.pool import Database

async def main():
    db = await Database.open(sys.argv[1], pool_size=1)
    async with db.connection() as conn:
        print("ready", flush=True)
        sys.stdin.readline()
        print(len(await migrate(conn)), flush=True)
    await db.close()

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def conn(empty_database_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    conn = await asyncpg.connect(empty_database_url)
    yield conn
    await conn.close()


async def test_five_processes_at_once_on_an_empty_database(empty_database_url: str) -> None:
    pipe = asyncio.subprocess.PIPE
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, empty_database_url, stdin=pipe, stdout=pipe)
        for _ in range(5)
    ]
    for process in started:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    outputs = await asyncio.gather(*(process.communicate(b"go\n") for process in started))
    assert [process.returncode for process in started] == [0] * 5
    applied = sorted(int(output) for output, _ in outputs)
    assert applied == [0, 0, 0, 0, len(migrations())]
    db = await Database.open(empty_database_url)
    async with db.connection() as conn:
        recorded = await conn.fetch("SELECT number, name FROM weft.migrations ORDER BY number")
        assert [tuple(row) for row in recorded] == [(each.number, each.name) for each in migrations()]
    await db.close()


async def test_when_nothing_is_to_be_done_it_is_one_round_trip(conn: asyncpg.Connection[Any]) -> None:
    assert await migrate(conn) == [each.name for each in migrations()]
    statements: list[str] = []
    conn.add_query_logger(lambda record: statements.append(record.query))
    assert await migrate(conn) == []
    await asyncio.sleep(0)  # asyncpg tells its loggers at the loop's next turn
    assert len(statements) == 1


async def test_a_process_that_dies_while_it_migrates_leaves_nothing_half_done(
    empty_database_url: str, conn: asyncpg.Connection[Any]
) -> None:
    """The second is made to wait inside its transaction, killed, and a third finishes."""
    blocker = await asyncpg.connect(empty_database_url)
    await migrate(blocker)
    await blocker.execute("DROP SCHEMA weft CASCADE")
    holding = blocker.transaction()
    await holding.start()
    await blocker.execute("CREATE SCHEMA weft")
    victim = await asyncpg.connect(empty_database_url)
    task = asyncio.create_task(migrate(victim))
    await blocked(conn, victim.get_server_pid())
    await conn.execute("SELECT pg_terminate_backend($1)", victim.get_server_pid())
    with pytest.raises(CONNECTION_LOST):
        await task
    await holding.rollback()
    assert await migrate(conn) == [each.name for each in migrations()]
    await blocker.close()


async def test_a_database_of_a_newer_weft_is_left_alone(conn: asyncpg.Connection[Any]) -> None:
    await migrate(conn)
    await conn.execute("INSERT INTO weft.migrations (number, name, checksum) VALUES (9000, 'later', 'x')")
    with pytest.raises(SchemaTooNew, match="migration 9000") as error:
        await migrate(conn)
    assert error.value.exit_status == 7
    assert error.value.hint


async def test_a_migration_that_reads_differently_is_noticed(conn: asyncpg.Connection[Any]) -> None:
    await migrate(conn)
    await conn.execute("UPDATE weft.migrations SET checksum = 'x' WHERE number = 1")
    with pytest.raises(SchemaTooNew, match="migration 0001"):
        await migrate(conn)


async def test_what_else_is_in_the_database_does_not_matter(conn: asyncpg.Connection[Any]) -> None:
    await conn.execute("CREATE TABLE public.runs (mine text); CREATE TABLE public.projects (mine text)")
    await migrate(conn)
    assert await conn.fetchval("SELECT count(*) FROM public.runs") == 0
    assert await conn.fetchval("SELECT to_regclass('weft.runs') IS NOT NULL")
