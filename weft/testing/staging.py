"""`program`: runs a whole program in a test, by a real worker on a database of its own, in a time that the test moves.

Not here: what a test does with it then (`stage.py`), and one body alone (`rig.py`).
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from anyio import to_thread

from weft.engine.programs import ProjectCode
from weft.engine.worker import open_worker
from weft.errors import DoesNotCompile
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import Program
from weft.lang.metadata import NodeSpec
from weft.nodes.api import Node, node_class
from weft.nodes.registry import Registry
from weft.nodes.spec import spec_of
from weft.settings import EngineSettings
from weft.store import projects, scratch
from weft.store.embedded import EmbeddedServer
from weft.store.pool import Database
from weft.testing.stage import Stage

T = TypeVar("T")

KEY: Final = "test"


@asynccontextmanager
async def program(
    source: str,
    *,
    nodes: Iterable[type[Node] | Callable[..., Any]] = (),
    folder: Path | None = None,
    server: str | None = None,
) -> AsyncIterator[Stage]:
    """A program, ready to be started any number of times: `async with program(source) as it: run = await it.start()`.

    It may use the catalog, the classes and functions in `nodes`, and the node files in `folder`. The database is made
    on `server`, the URL of any database there, by default on the embedded one. Raises DoesNotCompile.
    """
    registry = _Nodes(Registry.load([] if folder is None else [folder]), nodes)
    compiled = _compiled(source, registry)
    if server is None:
        server = await to_thread.run_sync(_embedded)
    async with scratch.scratch_database(server) as url:
        database = await Database.open(url)
        try:
            async with database.connection() as connection:
                number = await projects.ensure(connection, KEY, KEY)
            # A lease that no step of the clock outruns.
            settings = EngineSettings(lease=timedelta(days=365_000))
            async with _in_a_task(open_worker(database, [ProjectCode(number, KEY, registry)], settings)) as worker:
                yield Stage(worker, number, compiled)
        finally:
            await database.close()


@asynccontextmanager
async def _in_a_task(context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """The context, entered and left by one task: the setup and the teardown of a fixture are two."""
    entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        async with context as value:
            entered.set_result(value)
            await leave.wait()

    task = asyncio.create_task(hold())
    either: set[asyncio.Future[Any]] = {task, entered}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    try:
        if entered.done():
            yield entered.result()
    finally:
        leave.set()
        await task


@cache
def _embedded() -> str:
    """The embedded server, kept as long as this process lives."""
    server = EmbeddedServer()
    server.attach()
    atexit.register(server.leave)
    return server.dsn


class _Nodes(Registry):
    """The node types of files, and classes that a test brings along."""

    def __init__(self, files: Registry, nodes: Iterable[type[Node] | Callable[..., Any]]) -> None:
        super().__init__()
        if files.problems:
            raise files.problems[0]
        self._files = files
        self._classes = {spec_of(each).type: each for each in map(node_class, nodes)}

    def spec(self, type_name: str) -> NodeSpec | None:
        own = self._classes.get(type_name)
        return self._files.spec(type_name) if own is None else spec_of(own)

    def names(self) -> list[str]:
        return sorted({*self._files.names(), *self._classes})

    def node_class(self, type_name: str) -> type[Node] | None:
        return self._classes.get(type_name) or self._files.node_class(type_name)


class _NoFiles:
    def read(self, path: str) -> str:
        raise FileNotFoundError(f"{path}: a program in a test has no files beside it")


def _compiled(source: str, registry: Registry) -> Program:
    result = compile_source(Source("test.weft", source), registry, _NoFiles())
    if result.program is None:
        raise DoesNotCompile("\n".join(each.render() for each in result.diagnostics))
    return result.program
