"""`weft worker`: claims and drives what is queued in its projects, until it is told to go."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from weft.cli.commands.check import show_broken_nodes
from weft.cli.output import Output, note
from weft.cli.session import opened
from weft.cli.shell import COMPLETED, INTERRUPTED
from weft.errors import NotFound
from weft.service import listing
from weft.service.projects import LoadedProject, load_project


async def worker(concurrency: int | None, projects: list[Path], json: bool, database_url: str | None) -> int:
    from weft.service.running import open_runtime

    out = Output(json=json)
    paths = projects or [Path()]
    loaded = loaded_projects(paths, out)
    stop = asyncio.Event()
    drain_on_signals(stop)
    async with (
        opened(database_url, paths[0], concurrency=concurrency, log_level="info") as store,
        open_runtime(store, loaded, claims=True) as runtime,
    ):
        number = await listing.worker_number(store.database, runtime.worker.id)
        note(f"worker {number} serves {serves(loaded)}; SIGTERM or Ctrl-C drains it")
        if json:
            out.value({"worker": number, "projects": [each.project.id for each in loaded]})
            out.flush()
        await runtime.serve_until(stop)
        note("draining: what runs may finish, what is left goes back; once more ends at once")
    return COMPLETED


def loaded_projects(paths: Sequence[Path], out: Output) -> list[LoadedProject]:
    """The projects of these folders, each once; node files that are broken are shown.

    Raises:
        NotFound: there is no such folder.
    """
    for path in paths:
        if not path.exists():
            raise NotFound(f"--project {path} does not exist")
    loaded = list({each.project.id: each for each in map(load_project, paths)}.values())
    for each in loaded:
        show_broken_nodes(each, out, to_stdout=False)
    return loaded


def serves(loaded: Sequence[LoadedProject]) -> str:
    return ", ".join(f"{each.project.name} ({each.project.root})" for each in loaded)


def drain_on_signals(stop: asyncio.Event) -> None:
    """The first SIGTERM or Ctrl-C sets `stop`, a second one ends the process at once."""

    def heed() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heed)
