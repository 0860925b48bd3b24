"""A database, a project with the bench's nodes, and workers to drive it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from weft.engine.programs import ProjectCode
from weft.engine.worker import Worker, open_worker
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import Program
from weft.nodes.registry import Registry
from weft.settings import EngineSettings
from weft.store import projects
from weft.store.migrate import migrate
from weft.store.pool import Database

NODES = Path(__file__).parent / "nodes"
PARKED = 20_000


class NoFiles:
    def read(self, path: str) -> str:
        raise FileNotFoundError(path)


@dataclass
class Scene:
    dsn: str
    database: Database
    key: str
    project: int
    registry: Registry
    parked: int = PARKED

    def program(self, text: str) -> Program:
        compiled = compile_source(Source("bench.weft", text), self.registry, NoFiles())
        assert compiled.program is not None, "\n".join(each.render() for each in compiled.diagnostics)
        return compiled.program

    @asynccontextmanager
    async def worker(self, *, claims: bool = False, concurrency: int = 2000) -> AsyncIterator[Worker]:
        code = ProjectCode(self.project, self.key, self.registry)
        async with open_worker(
            self.database, [code], EngineSettings(), claims=claims, concurrency=concurrency
        ) as worker:
            yield worker


@asynccontextmanager
async def scene(dsn: str, key: str | None = None, *, parked: int = PARKED) -> AsyncIterator[Scene]:
    """A new project, or the one of a key that another process has made."""
    key = key or f"bench-{uuid4().hex[:8]}"
    database = await Database.open(dsn)
    try:
        async with database.connection() as connection:
            await migrate(connection)
            project = await projects.ensure(connection, key, "bench")
        yield Scene(dsn, database, key, project, Registry.load([NODES]), parked)
    finally:
        await database.close()
