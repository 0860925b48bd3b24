"""What most commands begin with: the project of the current folder, its settings, an open store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from weft import log
from weft.cli.output import wants_colour
from weft.cli.shell import debugging
from weft.settings import Project, load_settings, project_of

if TYPE_CHECKING:
    from weft.service.listing import RunRow
    from weft.service.opening import Store
    from weft.store.pool import Database


TAKEN_UP_WITHIN = 1.0
"""Seconds that are waited for somebody to take up a run that goes on."""

TAKEN_UP_LOOKS = 20


@asynccontextmanager
async def opened(
    database_url: str | None,
    path: Path | None = None,
    *,
    concurrency: int | None = None,
    pool_size: int = 4,
    log_level: log.Level = "error",
) -> AsyncIterator[Store]:
    """The store that the flag, the environment or the project of a path (else of the current folder) names."""
    from weft.service.opening import open_store

    project = project_of(path or Path())
    settings = load_settings(project, database_url=database_url, concurrency=concurrency)
    level: log.Level = "debug" if debugging() else log_level
    log.choose(settings.log_format, level, colour=wants_colour(sys.stderr))
    async with open_store(settings, pool_size=pool_size) as store:
        yield store


def current_project() -> Project:
    return project_of(Path())


async def taken_up(database: Database, run: RunRow) -> RunRow:
    """The run a moment after something made it go on. A process that only follows it would take it up within this, and
    is no worker that anybody knows of."""
    from weft.service import listing

    for _ in range(TAKEN_UP_LOOKS):
        run = await listing.refreshed(database, run)
        if run.status != "queued":
            break
        await asyncio.sleep(TAKEN_UP_WITHIN / TAKEN_UP_LOOKS)
    return run


async def who_goes_on(database: Database, run: RunRow) -> str:
    """What happens to a run that this process leaves: who drives it or could."""
    from weft.service import listing

    if run.ended:
        return f"it has {run.status}" if run.status != "cancelled" else "it was cancelled"
    alive = await listing.workers_of(database, run.project)
    if alive:
        return f"worker {alive[0]} of {run.project_name} goes on"
    if run.status == "running":
        return "the process that started it goes on"
    return "saved; nothing runs it until weft worker or weft serve is started"
