"""Notices between processes, by PostgreSQL's NOTIFY: they make things faster, and nothing depends on one.

Only ids travel; whoever hears one looks at the store. They are never sent inside a data transaction, which
would make all commits queue behind one lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal
from uuid import UUID

import anyio
import asyncpg

from weft.log import get_logger
from weft.store.beside import beside
from weft.store.pool import CONNECTION_LOST, FIRST_RETRY, LAST_RETRY, Connection, Database, until_lost
from weft.store.sql import load

_SQL = load(__name__)

CHANNEL: Final = "weft"
PAYLOAD_LIMIT: Final = 7_900
"""Bytes that PostgreSQL takes in one notification, less a margin."""

GATHER: Final = timedelta(milliseconds=1)
"""How long notices are gathered before they go out together."""

KEPT_WHILE_AWAY: Final = 10_000
"""Notices kept while the database is away. What is dropped beyond is found by the look that follows a reconnect."""

FLUSH_LIMIT: Final = timedelta(seconds=2)

log = get_logger("weft.store")


@dataclass(frozen=True, slots=True)
class Notice:
    """`ready`: a run of the project can be claimed. `ended`: the run has ended under the worker. `answered`: a wait
    of the run has ended under it. `stop`: one is queued. `due`: something of the project has just become due."""

    kind: Literal["ready", "ended", "answered", "stop", "due"]
    project: int
    run: UUID | None = None
    worker: UUID | None = None


def _encode(notice: Notice) -> str:
    return f"{notice.kind} {notice.project} {notice.run or '-'} {notice.worker or '-'}"


def _decode(line: str) -> Notice | None:
    """None for what a newer weft may say."""
    match line.split(" "):
        case ["ready" | "ended" | "answered" | "stop" | "due" as kind, project, run, worker]:
            return Notice(
                kind,
                int(project),
                None if run == "-" else UUID(run),
                None if worker == "-" else UUID(worker),
            )
        case _:
            return None


def _payloads(notices: Iterable[Notice]) -> list[str]:
    payloads: list[str] = []
    lines: list[str] = []
    size = 0
    for line in map(_encode, notices):
        if size + len(line) + 1 > PAYLOAD_LIMIT:
            payloads.append("\n".join(lines))
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        payloads.append("\n".join(lines))
    return payloads


async def publish(conn: Connection, notices: Iterable[Notice]) -> None:
    """Sends notices in one statement that commits by itself; for who has a few and no `Notifier`."""
    await conn.execute(_SQL.publish, _payloads(notices))


class Notifier:
    """Sends what a process has to say, gathered for a moment, on a connection of its own. An async context manager."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pending: dict[Notice, None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._connection: asyncpg.Connection[Any] | None = None
        self._work = AsyncExitStack()

    def send(self, notice: Notice) -> None:
        """Never waits and never fails. The same notice twice within a moment goes out once."""
        if len(self._pending) < KEPT_WHILE_AWAY:
            self._pending[notice] = None
            self._idle.clear()
            self._wake.set()

    async def flushed(self) -> None:
        """Returns when all that was sent has gone out, or the database has been away for too long to wait for."""
        with anyio.move_on_after(FLUSH_LIMIT.total_seconds()):
            await self._idle.wait()

    async def __aenter__(self) -> Notifier:
        await self._work.enter_async_context(beside(self._run()))
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self.flushed()
            await self._work.aclose()

    async def _run(self) -> None:
        pause = FIRST_RETRY
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await asyncio.sleep(GATHER.total_seconds())
                batch, self._pending = self._pending, {}
                try:
                    if self._connection is None:
                        self._connection = await self._db.dedicated("notifier", synchronous_commit="off")
                    await publish(self._connection, batch)
                except CONNECTION_LOST as error:
                    log.info("notices wait for the database", error=str(error))
                    self._drop_connection()
                    self._pending = {**batch, **self._pending}
                    self._wake.set()
                    await asyncio.sleep(pause.total_seconds())
                    pause = min(pause * 2, LAST_RETRY)
                    continue
                pause = FIRST_RETRY
                if not self._pending:
                    self._idle.set()
        finally:
            self._drop_connection()

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


class Listener:
    """Hears notices on a connection of its own, opened again whenever it is lost. An async context manager.

    `heard` is called for each notice, `resync` after each time that the connection was opened: what was said
    meanwhile is lost, and has to be looked for. Neither may block.
    """

    def __init__(self, db: Database, heard: Callable[[Notice], None], resync: Callable[[], None]) -> None:
        self._db = db
        self._heard = heard
        self._resync = resync
        self._work = AsyncExitStack()

    async def __aenter__(self) -> Listener:
        await self._work.enter_async_context(beside(self._run()))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._work.aclose()

    async def _run(self) -> None:
        pause = FIRST_RETRY
        while True:
            connection = None
            try:
                connection = await self._db.dedicated("listener")
                await connection.add_listener(CHANNEL, self._receive)
                pause = FIRST_RETRY
                self._resync()
                await until_lost(connection)
            except CONNECTION_LOST as error:
                log.info("listening is interrupted", error=str(error))
            finally:
                if connection is not None:
                    connection.terminate()
            await asyncio.sleep(pause.total_seconds())
            pause = min(pause * 2, LAST_RETRY)

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        for line in str(payload).split("\n"):
            notice = _decode(line)
            if notice is not None:
                self._heard(notice)
