"""Connections: what they say when the database is not there, and that they come back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
import pytest_asyncio

from tests.store.world import gone, until
from weft.errors import StoreUnreachable
from weft.store import pool
from weft.store.pool import CONNECTION_LOST, Database, place


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    db = await Database.open(database_url, pool_size=1, name="weft test")
    yield db
    await db.close()


async def refused(url: str) -> StoreUnreachable:
    with pytest.raises(StoreUnreachable) as error:
        await Database.open(url)
    assert error.value.exit_status == 7
    assert "secret" not in error.value.message
    return error.value


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.mark.parametrize("url", ["mysql://h/d", "not a url", "", "postgresql://h:port/d", "postgresql://[::1/d"])
async def test_a_url_that_is_none_is_said_so(url: str) -> None:
    error = await refused(url)
    assert "database URL" in error.message
    assert "postgresql://user:password@host:5432/database" in (error.hint or "")


async def test_nothing_listens_there(closed_port: int, tmp_path: Path) -> None:
    error = await refused(f"postgresql://me:secret@127.0.0.1:{closed_port}/data")
    assert error.message == f"nothing listens at 127.0.0.1:{closed_port}/data"
    error = await refused(f"postgresql://me:secret@/data?host={tmp_path}")
    assert str(tmp_path) in error.message


async def test_there_is_no_such_host() -> None:
    error = await refused("postgresql://me:secret@no-such-host.invalid/data")
    assert error.message == "there is no such host: no-such-host.invalid/data"


async def test_a_server_that_does_not_answer_is_not_waited_for_long(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT", pool.CONNECT_TIMEOUT / 20)
    error = await refused(f"postgresql://me:secret@127.0.0.1:{silent_port}/data")
    assert "did not answer within" in error.message


async def test_there_is_no_such_database(database_url: str) -> None:
    parts = urlsplit(database_url)
    error = await refused(urlunsplit(parts._replace(path="/nowhere")))
    assert error.message.startswith("there is no such database")
    assert error.message.endswith("/nowhere")


async def test_a_wrong_user_is_refused(database_url: str) -> None:
    parts = urlsplit(database_url)
    netloc = "nobody_at_all:secret@" + parts.netloc.rpartition("@")[2]
    error = await refused(urlunsplit(parts._replace(netloc=netloc)))
    assert "refuses this user" in error.message


async def test_a_connection_that_is_refused_for_want_of_room(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=1)
    name = urlsplit(database_url).path[1:]
    async with db.connection() as conn:
        await conn.execute(f"CREATE ROLE lonely_{name} LOGIN CONNECTION LIMIT 0")
    try:
        parts = urlsplit(database_url)
        netloc = f"lonely_{name}@" + parts.netloc.rpartition("@")[2]
        error = await refused(urlunsplit(parts._replace(netloc=netloc)))
        assert "has no connection left" in error.message
    finally:
        async with db.connection() as conn:
            await conn.execute(f"DROP ROLE lonely_{name}")
        await db.close()


def test_a_place_never_shows_the_password() -> None:
    assert place("postgresql://me:secret@db.example:6000/data") == "db.example:6000/data"
    assert place("postgresql:///data") == "the local socket/data"
    assert place("postgresql://me@/data?host=/run/pg") == "/run/pg/data"
    assert place("postgresql://me:secret@h:port/d") == "the given URL"


async def test_sessions_are_set_for_manners(db: Database) -> None:
    async with db.connection() as conn:
        shown = {name: await conn.fetchval(f"SHOW {name}") for name in ("search_path", "jit", "lock_timeout")}
        assert shown == {"search_path": "weft", "jit": "off", "lock_timeout": "10s"}
        assert await conn.fetchval("SHOW idle_in_transaction_session_timeout") == "5s"
        assert await conn.fetchval("SHOW application_name") == "weft test"
        assert await conn.fetchval("""SELECT '{"b":1,"a":1.0}'::json""") == '{"b":1,"a":1.0}'
    mine = await db.dedicated("writer", synchronous_commit="off")
    assert await mine.fetchval("SHOW application_name") == "weft test writer"
    assert await mine.fetchval("SHOW synchronous_commit") == "off"
    mine.terminate()


async def kill(db: Database, pid: int) -> None:
    other = await db.dedicated("killer")
    await other.execute("SELECT pg_terminate_backend($1)", pid)
    await gone(other, pid)
    await other.close()


async def test_fault_b63_a_connection_that_was_closed_while_idle_is_opened_again(db: Database) -> None:
    async with db.connection() as conn:
        pid = conn.get_server_pid()
    await kill(db, pid)
    async with db.connection() as conn:
        assert await conn.fetchval("SELECT 1") == 1
        assert conn.get_server_pid() != pid


async def test_a_connection_lost_inside_is_one_clear_error_and_the_next_one_works(db: Database) -> None:
    with pytest.raises(StoreUnreachable, match="was lost"):
        async with db.transaction() as conn:
            await kill(db, conn.get_server_pid())
            await conn.execute("SELECT 1")
    async with db.connection() as conn:
        assert await conn.fetchval("SELECT 1") == 1


async def test_an_error_of_the_caller_passes_as_it_is(db: Database) -> None:
    with pytest.raises(FileNotFoundError):
        async with db.connection():
            raise FileNotFoundError("mine")
    with pytest.raises(asyncpg.UndefinedTableError):
        async with db.connection() as conn:
            await conn.execute("SELECT * FROM nowhere")


async def test_a_transaction_that_is_left_by_an_error_or_a_cancel_leaves_nothing(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as conn:
            await conn.execute("CREATE TABLE left_over ()")
            raise ZeroDivisionError

    async def hang() -> None:
        async with db.transaction() as conn:
            await conn.execute("CREATE TABLE left_over ()")
            await conn.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(hang())
    watch = await db.dedicated("watch")
    await until(lambda: watch.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with db.connection() as conn:
        assert await conn.fetchval("SELECT to_regclass('left_over')") is None
        assert not conn.is_in_transaction()
    await watch.close()


async def test_race_58_a_transaction_that_stands_idle_is_ended_by_the_server(db: Database) -> None:
    stalled = await db.dedicated("stalled", idle_in_transaction_session_timeout="20ms")
    transaction = stalled.transaction()
    await transaction.start()
    await stalled.execute("CREATE TABLE held ()")
    watch = await db.dedicated("watch")
    await gone(watch, stalled.get_server_pid())
    with pytest.raises(CONNECTION_LOST):
        await transaction.commit()
    await watch.close()
