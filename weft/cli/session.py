"""What most commands begin with: the project of the current folder, its settings, an open store."""

from __future__ import annotations

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


@asynccontextmanager
async def opened(
    database_url: str | None,
    path: Path | None = None,
    *,
    concurrency: int | None = None,
    log_level: log.Level = "error",
) -> AsyncIterator[Store]:
    """The store that the flag, the environment or the project of a path (else of the current folder) names."""
    from weft.service.opening import open_store

    project = project_of(path or Path())
    settings = load_settings(project, database_url=database_url, concurrency=concurrency)
    level: log.Level = "debug" if debugging() else log_level
    log.choose(settings.log_format, level, colour=wants_colour(sys.stderr))
    async with open_store(settings) as store:
        yield store


def current_project() -> Project:
    return project_of(Path())


async def who_goes_on(database: Database, run: RunRow) -> str:
    """What happens to a run that this process leaves: who drives it or could."""
    from weft.service import listing

    alive = await listing.workers_of(database, run.project)
    if alive:
        return f"worker {alive[0]} of {run.project_name} goes on"
    if run.status == "running":
        return "the process that started it goes on"
    return "saved; nothing runs it until weft worker is started"
