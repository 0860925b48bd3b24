"""Group commit: one statement carries what all runs of a worker produced since the last one started.

A run hands in nothing; it says that it has something (`submit`), and is asked for it when the next statement is made.
Each run is told what was saved and what was refused. What a run is, and what waits for its events: `executor.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence, Sized
from typing import Protocol
from uuid import UUID

from weft.engine.retrying import FIRST_PAUSE, LONGEST_PAUSE, retrying
from weft.errors import FenceLost
from weft.log import get_logger
from weft.store.pool import CONNECTION_LOST, Connection, Database
from weft.store.runs import journal, runs, scopes
from weft.store.runs.journal import Saved, Write
from weft.store.runs.scopes import Ended

SMALLEST_HALF = 16
LARGEST_BATCH = 500
"""Runs in one statement: half of those that are driven, between these two. While the database commits one half, their
bodies being held until then, the bodies of the other half run; together in one batch each would wait for the other."""

log = get_logger("weft.journal")


class Author(Protocol):
    """A run, as the writer sees it."""

    next_seq: int

    def take_write(self) -> Write | None:
        """Everything unsaved, or None when there is nothing. The run keeps nothing of it."""

    def saved(self, write: Write, saved: Saved) -> None: ...

    def refused(self, write: Write) -> None: ...


class JournalWriter:
    """The one writer of a worker, on a connection of its own."""

    def __init__(
        self, database: Database, worker: UUID, driven: Sized, told: Callable[[Sequence[Ended]], None]
    ) -> None:
        """`driven` are the runs that this process drives; `told` hears of the children that ended with one."""
        self._database = database
        self._driven = driven
        self._told = told
        self._worker = worker
        self._waiting: dict[Author, None] = {}
        self._wake = asyncio.Event()
        self._busy: set[Author] = set()
        self._alone: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._connection: Connection | None = None

    def submit(self, author: Author) -> None:
        """This run has something to save."""
        if author not in self._waiting:
            self._waiting[author] = None
            if author not in self._busy:
                self._idle.clear()
                self._wake.set()

    async def flushed(self) -> None:
        """Returns when nothing is waiting and nothing is under way."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                if not self._take_ready():
                    if not self._waiting and not self._busy:
                        self._idle.set()
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                await self._commit()
        finally:
            for task in self._alone:
                task.cancel()
            if self._connection is not None:
                self._connection.terminate()

    def _take_ready(self) -> bool:
        return any(author not in self._busy for author in self._waiting)

    async def _commit(self) -> None:
        batch: dict[UUID, tuple[Author, Write]] = {}
        most = min(max((len(self._driven) + 1) // 2, SMALLEST_HALF), LARGEST_BATCH)
        for author in list(self._waiting):
            if author in self._busy:
                continue
            del self._waiting[author]
            write = author.take_write()
            if write is not None:
                batch[write.run] = (author, write)
                self._busy.add(author)
                if len(batch) == most:
                    break
        if not batch:
            return
        committed = await self._append([write for _, write in batch.values()])
        for run, (author, write) in batch.items():
            saved = committed.get(run)
            if saved is None:
                self._settle_alone(author, write)
            else:
                self._busy.discard(author)
                author.saved(write, saved)

    async def _append(self, writes: Sequence[Write]) -> dict[UUID, Saved]:
        """Append, across any number of lost connections. After one, the outcome of the statement is unknown: what is
        found in the journal was saved, and the rest is tried again under the same guard."""
        known: dict[UUID, Saved] = {}
        pause = FIRST_PAUSE
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._database.dedicated("writer")
                    if pause > FIRST_PAUSE:
                        known = await self._found(self._connection, writes)
                        log.info("store reached again")
                rest = [write for write in writes if write.run not in known]
                if not rest:
                    return known
                return known | await journal.append(self._connection, self._worker, rest)
            except CONNECTION_LOST as error:
                # A moment is nothing to a person in front of a run; what lasts, he must hear of.
                tell = log.error if pause == LONGEST_PAUSE else log.warning
                tell("store lost, trying again", error=str(error), runs=len(writes))
                if self._connection is not None:
                    self._connection.terminate()
                    self._connection = None
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _found(self, connection: Connection, writes: Sequence[Write]) -> dict[UUID, Saved]:
        """Which of these writes the journal already holds."""
        found: dict[UUID, Saved] = {}
        for write in writes:
            rows = await journal.read(connection, write.project, write.run, after=write.after)
            status = await runs.status(connection, write.project, write.run)
            stored = [event for row in rows for event in json.loads(row.events)]
            mine = [json.loads(event) for event in write.events]
            parked = write.parks and status is not None and status.worker != self._worker
            if parked or (mine and any(stored[at : at + len(mine)] == mine for at in range(len(stored)))):
                assert status is not None
                found[write.run] = Saved(status.next_seq, parked)
        return found

    def _settle_alone(self, author: Author, write: Write) -> None:
        """A run that did not come back is locked by somebody, or is no longer ours. Ask for it alone, so that the
        others need not wait."""
        task = asyncio.create_task(self._write_alone(author, write))
        self._alone.add(task)
        task.add_done_callback(self._alone.discard)

    async def _write_alone(self, author: Author, write: Write) -> None:
        tried = False

        async def append(connection: Connection) -> Saved | None:
            nonlocal tried
            if tried and (found := await self._found(connection, [write])):
                return found[write.run]
            tried = True
            return await journal.append_alone(connection, self._worker, write)

        saved = await retrying(self._database, append)
        if saved is None and write.ends is not None:
            saved = await self._end_with_children(write)
        self._busy.discard(author)
        if saved is None:
            self._waiting.pop(author, None)
            author.refused(write)
        else:
            author.saved(write, saved)
        self._wake.set()

    async def _end_with_children(self, write: Write) -> Saved | None:
        """The end of a run that may have started others, which are cancelled with it. None: it is no longer ours."""

        async def end(connection: Connection) -> list[Ended]:
            async with connection.transaction():
                return await scopes.end_owned(connection, self._worker, write)

        try:
            self._told(await retrying(self._database, end))
        except FenceLost:
            return None
        return Saved(write.after + 1 + len(write.events), parked=False)
