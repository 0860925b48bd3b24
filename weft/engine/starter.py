"""Starts runs in groups: all that ask while one statement is under way share the next one.

A run started here is born claimed by this worker, with its first events already in its journal.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from uuid import UUID

from weft.engine.retrying import retrying
from weft.lang.graph import Program
from weft.store.pool import CONNECTION_LOST, Connection, Database
from weft.store.runs import programs, runs
from weft.store.runs.runs import NewRun

BATCH_STARTS = 200


@dataclass(slots=True)
class _Asked:
    project: int
    new: NewRun
    started: asyncio.Future[UUID] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: BaseException) -> None:
        if not self.started.done():
            self.started.set_exception(error)


class Starter:
    """A worker's starts. `run` goes on beside the runs; `start` may be called by any number of tasks at once."""

    def __init__(self, database: Database, worker: UUID) -> None:
        self._database = database
        self._worker = worker
        self._asked: list[_Asked] = []
        self._wake = asyncio.Event()
        self._stored: dict[tuple[int, str], float] = {}

    async def store_program(self, project: int, program: Program) -> None:
        """Keep the program in the store, where its runs name it by its hash."""
        key = (project, program.hash)
        now = asyncio.get_running_loop().time()
        if now - self._stored.get(key, -programs.USED_FOR.total_seconds()) >= programs.USED_FOR.total_seconds():
            await retrying(self._database, lambda c: programs.put(c, project, program.hash, program.text()))
            self._stored[key] = now

    async def start(self, project: int, new: NewRun) -> UUID:
        """Returns the run's id once it is saved. A lost connection is not tried again: whether the run exists is then
        unknown, and starting it twice is worse than an error."""
        asked = _Asked(project, new)
        self._asked.append(asked)
        self._wake.set()
        return await asked.started

    async def run(self) -> None:
        """Start what is asked for until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._asked:
                batch, self._asked = self._asked[:BATCH_STARTS], self._asked[BATCH_STARTS:]
                try:
                    async with self._database.connection() as connection:
                        await self._start_batch(connection, batch)
                except CONNECTION_LOST as error:
                    for asked in batch:
                        asked.fail(error)

    async def _start_batch(self, connection: Connection, batch: list[_Asked]) -> None:
        of_project: defaultdict[int, list[_Asked]] = defaultdict(list)
        for asked in batch:
            of_project[asked.project].append(asked)
        for project, group in of_project.items():
            try:
                ids = await runs.start(connection, project, self._worker, [asked.new for asked in group])
            except CONNECTION_LOST:
                raise
            except Exception as error:
                for asked in group:
                    asked.fail(error)
                continue
            for asked, run in zip(group, ids, strict=True):
                if not asked.started.done():
                    asked.started.set_result(run)
