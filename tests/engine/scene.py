"""What the engine's tests act in: one project, its nodes (tests/engine/nodes), its runs and their journals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from weft.engine.executor import End
from weft.engine.programs import ProjectCode
from weft.engine.worker import Worker, open_worker
from weft.flow.events import ExecutionStarted, encode
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import Program
from weft.nodes.registry import Registry
from weft.settings import EngineSettings
from weft.store import projects
from weft.store.notify import Notice, publish
from weft.store.pool import Database
from weft.store.runs import journal, programs, runs, tags, waits
from weft.store.runs.runs import NewRun, RunStatus

NODES = Path(__file__).parent / "nodes"
KEY = "engine-tests"


class NoFiles:
    def read(self, path: str) -> str:
        raise FileNotFoundError(path)


@dataclass
class Scene:
    url: str
    database: Database
    project: int
    registry: Registry
    settings: EngineSettings = field(default_factory=EngineSettings)
    programs: dict[str, str] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, key: str = KEY) -> AsyncIterator[Scene]:
        database = await Database.open(url)
        try:
            async with database.connection() as connection:
                project = await projects.ensure(connection, key, key)
            yield cls(url, database, project, Registry.load([NODES]))
        finally:
            await database.close()

    # --- programs and runs --------------------------------------------------------------------------------

    def program(self, text: str) -> Program:
        compiled = compile_source(Source("test.weft", text), self.registry, NoFiles())
        assert compiled.program is not None, "\n".join(each.render() for each in compiled.diagnostics)
        return compiled.program

    @asynccontextmanager
    async def worker(self, *, claims: bool = False, concurrency: int = 200, **changed: Any) -> AsyncIterator[Worker]:
        """A worker inside this process."""
        settings = EngineSettings(**changed) if changed else self.settings
        code = ProjectCode(self.project, KEY, self.registry, lambda path, _inputs: self.program(self.programs[path]))
        async with open_worker(
            self.database, [code], settings, claims=claims, concurrency=concurrency
        ) as worker:
            yield worker

    async def run(self, worker: Worker, text: str, **options: Any) -> tuple[UUID, End]:
        """Start a program here and wait for its end."""
        run = await worker.start(self.project, self.program(text), **options)
        return run, await worker.ended(run, self.project)

    async def queue(self, text: str, count: int = 1, tagged: Sequence[str] = ()) -> list[UUID]:
        """Queue runs that no worker has claimed."""
        program = self.program(text)
        first = encode(ExecutionStarted(KEY, program.hash, program.entry, None))
        new = NewRun(program.hash, program.entry, [first])
        async with self.database.transaction() as connection:
            await programs.put(connection, self.project, program.hash, program.text())
            if not tagged:
                return await runs.start(connection, self.project, None, [new] * count)
            return [await tags.start_tagged(connection, self.project, None, new, tagged) for _ in range(count)]

    # --- looking ------------------------------------------------------------------------------------------

    async def status(self, run: UUID) -> RunStatus:
        async with self.database.connection() as connection:
            found = await runs.status(connection, self.project, run)
        assert found is not None
        return found

    async def events(self, run: UUID) -> list[dict[str, Any]]:
        """The run's journal, event by event."""
        async with self.database.connection() as connection:
            rows = await journal.read(connection, self.project, run)
        return [event for row in rows for event in json.loads(row.events)]

    async def kinds(self, run: UUID, node: str | None = None) -> list[str]:
        return [each["kind"] for each in await self.events(run) if node is None or each.get("node") == node]

    async def aftermath(self, run: UUID) -> list[dict[str, Any]]:
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT event FROM run_aftermath WHERE run = $1 ORDER BY number", run)
        return [json.loads(row["event"]) for row in rows]

    async def until(self, run: UUID, looked_for: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """The run's journal once it is as looked for."""
        while not looked_for(events := await self.events(run)):
            await asyncio.sleep(0.02)
        return events

    async def until_started(self, run: UUID, node: str) -> None:
        await self.until(
            run, lambda events: any(each["kind"] == "node_started" and each["node"] == node for each in events)
        )

    async def until_status(self, run: UUID, wanted: str) -> RunStatus:
        while (status := await self.status(run)).status != wanted:
            await asyncio.sleep(0.02)
        return status

    async def waits(self, run: UUID) -> list[waits.Wait]:
        async with self.database.connection() as connection:
            return await waits.of_run(connection, self.project, run)

    async def form(self, run: UUID) -> waits.Wait:
        """The run's open form, once there is one."""
        while not (found := [each for each in await self.waits(run) if each.kind == "form"]):
            await asyncio.sleep(0.02)
        return found[0]

    async def answer(self, token: str, value: Any, worker: Worker | None = None) -> None:
        """Answer a wait as somebody outside does; with a worker, it tells whoever must hear of it."""
        async with self.database.connection() as connection:
            answered = await waits.answer(connection, token, json.dumps(value), "a person")
            if worker is None:
                kind = "answered" if answered.worker else "ready"
                await publish(connection, [Notice(kind, answered.project, answered.run, answered.worker)])
        if worker is not None:
            worker.tell_answered([answered])

    async def until_ended(self, run: UUID) -> RunStatus:
        while (status := await self.status(run)).ended_at is None:
            await asyncio.sleep(0.02)
        return status

    # --- other processes ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def process(self, **environment: str) -> AsyncIterator[WorkerProcess]:
        """A worker in a process of its own, which claims; it can be killed for real."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.engine.worker_process",
            self.url,
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        ready = await process.stdout.readline()
        assert ready.strip() == b"ready"
        try:
            yield WorkerProcess(process)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                await process.wait()


@dataclass
class WorkerProcess:
    process: asyncio.subprocess.Process

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def drain(self) -> int:
        """As an operator does it: SIGTERM, then wait for the exit status."""
        self.process.terminate()
        return await self.process.wait()
