"""Stopping runs for a person: by id, or all of a project's live runs that carry a tag.

The ends themselves are the store's one cancel path; here are its chunks, and what to do when one fails. Stops that runs
ask of each other are the engine's (`weft.engine.waker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from weft.errors import StoreUnreachable
from weft.store import projects
from weft.store.notify import Notice, Notifier
from weft.store.pool import Database
from weft.store.runs import listing, scopes
from weft.store.runs.scopes import Ended, Ending

CHUNK = 1_000
"""Trees ended in one transaction: many more would hold their locks for too long."""

BY_USER = "Cancelled by user"


@dataclass(slots=True)
class Stopped:
    """The runs that this stop ended, in order, and those it could not end, each with why."""

    runs: list[UUID] = field(default_factory=list)
    failed: dict[UUID, str] = field(default_factory=dict)


async def live_tagged(database: Database, project_key: str, tag: str) -> list[UUID]:
    """The project's live runs that carry the tag, oldest tag first; none where the project is not known yet."""
    async with database.connection() as connection:
        number = await projects.find(connection, project_key)
        return [] if number is None else await listing.live_tagged(connection, number, tag)


async def stop_tagged(database: Database, project_key: str, tag: str, runs: Sequence[UUID]) -> Stopped:
    """End these runs of a project, which were found by their tag."""
    async with database.connection() as connection:
        number = await projects.find(connection, project_key)
    if number is None:
        return Stopped()
    return await stop_runs(database, number, runs, f"{BY_USER} (tag {tag})", {"kind": "user", "tag": tag})


async def stop_runs(
    database: Database,
    project: int,
    runs: Sequence[UUID],
    reason: str = BY_USER,
    cause: dict[str, Any] | None = None,
) -> Stopped:
    """End these runs of one project and all below them; one that has already ended is left as it is."""
    stopped = Stopped()
    ending = Ending("cancelled", reason, cause or {"kind": "user"})
    async with Notifier(database) as notifier:
        for start in range(0, len(runs), CHUNK):
            ended = await _end(database, project, runs[start : start + CHUNK], ending, stopped)
            for each in ended:
                notifier.send(Notice("ended", project, each.run, each.worker))
            gone = {each.run for each in ended}
            stopped.runs += [run for run in runs[start : start + CHUNK] if run in gone]
        await notifier.flushed()
    return stopped


async def _end(
    database: Database, project: int, runs: Sequence[UUID], ending: Ending, stopped: Stopped
) -> list[Ended]:
    """One chunk; where it fails it is halved, down to the one run at fault, so that no other is spared."""
    try:
        async with database.transaction() as connection:
            return await scopes.end_trees(connection, project, list(runs), ending)
    except StoreUnreachable:
        raise
    except Exception as error:
        if len(runs) == 1:
            stopped.failed[runs[0]] = str(error) or type(error).__name__
            return []
    middle = len(runs) // 2
    first = await _end(database, project, runs[:middle], ending, stopped)
    return first + await _end(database, project, runs[middle:], ending, stopped)
