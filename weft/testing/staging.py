"""`program`: runs a whole program in a test, by a real worker on a database of its own, in a time that the test moves.

Not here: what a test does with it then (`stage.py`), and one body alone (`rig.py`).
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
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
from weft.nodes.reading.spec import spec_of
from weft.nodes.registry import Registry
from weft.service.compiling import ProjectFiles, child_program
from weft.service.projects import NODES_FOLDER, LoadedProject
from weft.settings import EngineSettings, Project, load_settings
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
    files: Mapping[str, str] | None = None,
    project: Path | None = None,
    server: str | None = None,
) -> AsyncIterator[Stage]:
    """A program, ready to be started any number of times: `async with program(source) as it: run = await it.start()`.

    It may use the catalog and the classes and functions in `nodes`. `files` are texts by their path, for `@file` and
    for the programs that runs start; `project` is a folder that has files, and nodes in its `nodes`, instead. The
    database is made on `server`, the URL of any database there, by default on the embedded one. Raises DoesNotCompile.
    """
    if project is not None and files:
        raise ValueError("a program has the files of a project, or files of its own")
    with _folder(project, files or {}) as root:
        registry = _Nodes(Registry.load([root / NODES_FOLDER]), nodes)
        loaded = LoadedProject(Project(KEY, KEY, root), registry)
        compiled = _compiled(source, loaded)
        if server is None:
            server = await to_thread.run_sync(_embedded)
        async with scratch.scratch_database(server) as url:
            database = await Database.open(url)
            try:
                async with database.connection() as connection:
                    number = await projects.ensure(connection, KEY, KEY)
                code = ProjectCode(number, KEY, registry, partial(child_program, loaded))
                # A lease that no step of the clock outruns.
                settings = EngineSettings(lease=timedelta(days=365_000))
                async with _in_a_task(open_worker(database, [code], settings)) as worker:
                    yield Stage(worker, number, compiled)
            finally:
                await database.close()


@contextmanager
def _folder(project: Path | None, files: Mapping[str, str]) -> Iterator[Path]:
    if project is not None:
        yield project
        return
    with TemporaryDirectory(prefix="weft-program-") as made:
        for name, text in files.items():
            file = Path(made, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield Path(made)


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
    """The embedded server that the settings name, kept as long as this process lives."""
    settings = load_settings()
    server = EmbeddedServer(settings.data_folder, tools=settings.postgres_tools)
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


def _compiled(source: str, loaded: LoadedProject) -> Program:
    result = compile_source(Source("test.weft", source), loaded.registry, ProjectFiles(loaded.project.root))
    if result.program is None:
        raise DoesNotCompile("\n".join(each.render() for each in result.diagnostics))
    return result.program
