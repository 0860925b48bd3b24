"""`weft serve`: the HTTP door and a worker in one process, until it is told to go."""

from __future__ import annotations

import asyncio
from pathlib import Path

from weft.cli.commands.worker import drain_on_signals, loaded_projects, serves
from weft.cli.output import Output, note
from weft.cli.session import opened
from weft.cli.shell import COMPLETED
from weft.service import doors, listing

POOL = 10
"""Connections that the worker and all requests share."""


async def serve(
    host: str, port: int, concurrency: int | None, projects: list[Path], json: bool, database_url: str | None
) -> int:
    from weft.service.running import open_runtime
    from weft.web.server import listening_on, open_door

    out = Output(json=json)
    paths = projects or [Path()]
    loaded = loaded_projects(paths, out)
    stop = asyncio.Event()
    drain_on_signals(stop)
    async with (
        opened(database_url, paths[0], concurrency=concurrency, log_level="info", pool_size=POOL) as store,
        # Before the worker, which would begin runs only to be told that the port is in use.
        listening_on(store, host, port) as listening,
        open_runtime(store, loaded, claims=True) as runtime,
        open_door(store, loaded, listening) as door,
        doors.announced(store.database, listening.address, local=listening.local),
    ):
        runtime.on_saved(lambda run, _: door.saved(run))
        number = await listing.worker_number(store.database, runtime.worker.id)
        if json:
            projects_served = [each.project.id for each in loaded]
            out.value({"address": listening.address, "worker": number, "projects": projects_served})
        else:
            out.line(listening.address)
        out.flush()
        note(f"worker {number} serves {serves(loaded)}; SIGTERM or Ctrl-C drains it")
        await runtime.serve_until(stop)
        note("draining: what runs may finish, what is left goes back; once more ends at once")
    return COMPLETED
