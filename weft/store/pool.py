"""Connections: how they are opened, what each session is set to, and what is said when the database is not
there.

Nothing here knows a table. Values of type json travel as text, which is what asyncpg does by itself.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
import asyncpg

from weft.errors import StoreUnreachable

SCHEMA: Final = "weft"
"""Every table stands in this schema, so that weft can share a database with what else is in it."""

OLDEST_SERVER: Final = 15

URL_HINT: Final = "it looks like postgresql://user:password@host:5432/database"

CONNECT_TIMEOUT: Final = timedelta(seconds=5)

FIRST_RETRY: Final = timedelta(milliseconds=50)
LAST_RETRY: Final = timedelta(seconds=1)
"""How long to wait before the database is tried again; it doubles from the first to the last."""

PROBE: Final = timedelta(seconds=10)
"""How often a connection that only listens or holds a lock is asked whether it is there; it has as long to answer."""

Connection: TypeAlias = "asyncpg.Connection[Any] | asyncpg.pool.PoolConnectionProxy[Any]"

CONNECTION_LOST: Final[tuple[type[BaseException], ...]] = (
    StoreUnreachable,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # Nothing is lost but the statement, which somebody who makes room lets through: waited out like a lost connection.
    asyncpg.DiskFullError,
    asyncpg.InterfaceError,
    # What a rollback meets where the server has said its last word and the socket is not yet closed.
    asyncpg.InternalClientError,
    OSError,
)
"""For `except`: the connection or the server is gone, and the outcome of what was under way is not known."""

_SESSION: Final = {
    "search_path": SCHEMA,
    "jit": "off",
    "timezone": "UTC",
    # No transaction of ours waits for user code; one that stands idle belongs to a stopped process, and holds locks.
    "idle_in_transaction_session_timeout": "5s",
    "idle_session_timeout": "0",
    "lock_timeout": "10s",
    # A host that vanishes must free its locks within seconds, not within TCP's two hours.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    # A statement is planned once a connection, maybe while its tables are still empty, and must be right when
    # they are big: every search that a worker makes has an index.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
}

# What is lost is said here, once and in our words; asyncpg's pool would print a traceback of its own.
logging.getLogger("asyncpg").setLevel(logging.CRITICAL)


class Database:
    """A pool of connections to one database, and connections beside it.

    One pooled connection is enough for anything: no call holds one while it asks for another.
    """

    def __init__(self, dsn: str, pool: asyncpg.Pool[Any], name: str) -> None:
        self.dsn = dsn
        self.name = name
        self._pool = pool

    @classmethod
    async def open(cls, dsn: str, *, pool_size: int = 4, name: str = "weft") -> Database:
        """Connects. `name` is what the server shows as the application. Raises `StoreUnreachable`."""
        if not dsn.strip():
            # asyncpg would look for a server by itself, and find one that nobody meant.
            raise StoreUnreachable("the database URL is empty", hint=URL_HINT)
        if not _has_possible_port(dsn):
            raise StoreUnreachable("the database URL cannot be used: its port is none", hint=URL_HINT)
        pool = asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=pool_size,
            reset=_nothing_to_reset,
            timeout=CONNECT_TIMEOUT.total_seconds(),
            server_settings={**_SESSION, "application_name": name},
        )
        try:
            with _reaching(dsn):
                await pool
            async with pool.acquire() as connection:
                version = connection.get_server_version().major
        except BaseException:
            pool.terminate()
            raise
        if version < OLDEST_SERVER:
            pool.terminate()
            raise StoreUnreachable(
                f"the database at {place(dsn)} is PostgreSQL {version}",
                hint=f"weft needs PostgreSQL {OLDEST_SERVER} or newer",
            )
        return cls(dsn, pool, name)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A pooled connection, for statements that each commit by themselves.

        Raises `StoreUnreachable` when there is none, or when it is lost inside; then the outcome of the
        statement that was under way is not known.
        """
        with _reaching(self.dsn):
            connection = await self._pool.acquire()
        try:
            yield connection
        except CONNECTION_LOST as error:
            if isinstance(error, asyncpg.InternalClientError) or _is_gone(connection):
                raise StoreUnreachable(f"the connection to the database at {place(self.dsn)} was lost") from error
            raise
        finally:
            await self._pool.release(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A pooled connection inside one transaction, which ends with the block. Raises as `connection` does."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def dedicated(self, name: str, **settings: str) -> asyncpg.Connection[Any]:
        """A connection of the caller's own, outside the pool: to listen, to write, to hold a lock. Close it.

        `settings` are session settings beyond the common ones. Raises `StoreUnreachable`.
        """
        with _reaching(self.dsn):
            return await asyncpg.connect(
                self.dsn,
                timeout=CONNECT_TIMEOUT.total_seconds(),
                server_settings={**_SESSION, "application_name": f"{self.name} {name}", **settings},
            )

    async def close(self) -> None:
        """Waits for the connections in use, then closes all."""
        await self._pool.close()


async def until_lost(connection: asyncpg.Connection[Any]) -> None:
    """Returns, or raises one of `CONNECTION_LOST`, once a dedicated connection is gone.

    One that only seems to be there (a vanished host, a router that forgot it) is found out by asking.
    """
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _: lost.set())
    while not lost.is_set() and not connection.is_closed():
        with anyio.move_on_after(PROBE.total_seconds()):
            await lost.wait()
        with anyio.fail_after(PROBE.total_seconds()):
            await connection.execute("SELECT 1")


def _is_gone(connection: Connection) -> bool:
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        # The pool has taken a dead one back before its user noticed.
        return True


async def _nothing_to_reset(connection: asyncpg.Connection[Any]) -> None:
    """No session state is ever set on a pooled connection, which saves a round trip at each release."""


def place(dsn: str) -> str:
    """Where a DSN leads, for people: host, port and database, never user or password."""
    try:
        parts = urlsplit(dsn)
        asked = parse_qs(parts.query)
        host = parts.hostname or asked.get("host", ["the local socket"])[0]
        port = parts.port
    except ValueError:
        return "the given URL"
    database = parts.path.lstrip("/")
    return f"{host}{f':{port}' if port else ''}{f'/{database}' if database else ''}"


def _has_possible_port(dsn: str) -> bool:
    try:
        parts = urlsplit(dsn)
        # Several hosts, each with its port, are asyncpg's to read.
        return "," in parts.netloc or parts.port is None or parts.port > 0
    except ValueError:
        return False


@contextmanager
def _reaching(dsn: str) -> Iterator[None]:
    """Around opening a connection, and nothing else: says what stands in the way."""
    try:
        yield
    except StoreUnreachable:
        raise
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as error:
        message, hint = _in_the_way(error, place(dsn))
        raise StoreUnreachable(message, hint=hint) from error


def _in_the_way(error: Exception, where: str) -> tuple[str, str | None]:
    match error:
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return f"the database at {where} refuses this user: {error}", "check user and password in the database URL"
        case asyncpg.InvalidCatalogNameError():
            return f"there is no such database: {where}", "create it, or correct the end of the database URL"
        case asyncpg.TooManyConnectionsError():
            return f"the database at {where} has no connection left", "raise its max_connections or stop a worker"
        case asyncpg.CannotConnectNowError():
            return f"the database at {where} is starting or stopping", "try again in a moment"
        case socket.gaierror():
            return f"there is no such host: {where}", "check the host in the database URL"
        case TimeoutError():
            limit = CONNECT_TIMEOUT.total_seconds()
            return f"the database at {where} did not answer within {limit:g} s", "check host, port and firewall"
        case OSError():
            return f"nothing listens at {where}", "start PostgreSQL there, or correct the database URL"
        case asyncpg.ClientConfigurationError():
            return f"the database URL cannot be used: {error}", URL_HINT
        case ValueError():
            # What it quotes may be a piece of the password.
            return "the database URL cannot be read", f"{URL_HINT}; a password's @ : / are written %40 %3A %2F"
        case _:
            return f"the database at {where} cannot be reached: {error}", None
