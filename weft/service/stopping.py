"""Stopping runs for a person: by id, or all of a project's live runs that carry a tag.

Those who drive them are told. The ends themselves are the store's one cancel path, and stops that runs ask of each
other are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from weft.store import projects
from weft.store.notify import Notice, Notifier
from weft.store.pool import Database
from weft.store.runs import endings, listing, stops
from weft.store.runs.endings import Report

BY_USER = "Cancelled by user"


@dataclass(slots=True)
class Stopped:
    """The runs that a stop ended (those below them too), and those that it could not end, each with why."""

    runs: list[UUID] = field(default_factory=list)
    failed: dict[UUID, str] = field(default_factory=dict)


async def live_tagged(database: Database, project_key: str, tag: str) -> list[UUID]:
    """The project's live runs that carry the tag, oldest tag first; none where the project is not known yet."""
    async with database.connection() as connection:
        number = await projects.find(connection, project_key)
        return [] if number is None else await listing.live_tagged(connection, number, tag)


async def stop_tagged(database: Database, project_key: str, tag: str, why: str | None = None) -> Stopped:
    """End the project's live runs that carry the tag now. `why` is said in their reason."""
    async with database.connection() as connection:
        number = await projects.find(connection, project_key)
    if number is None:
        return Stopped()
    reason = _reason(f"{BY_USER} (tag {tag})", why)
    report = await stops.end_tagged(database, number, tag, reason, {"kind": "user", "tag": tag})
    return await _told(database, number, report)


async def stop_runs(database: Database, project: int, runs: Sequence[UUID], why: str | None = None) -> Stopped:
    """End these runs of one project; one that has already ended is left as it is. `why` is said in their reason."""
    report = await endings.end_runs(database, project, runs, _reason(BY_USER, why), {"kind": "user"})
    return await _told(database, project, report)


def _reason(what: str, why: str | None) -> str:
    return f"{what}: {why}" if why else what


async def _told(database: Database, project: int, report: Report) -> Stopped:
    """Tell the owners of what was ended, so that their bodies hear it at once and not at their next look."""
    async with Notifier(database) as notifier:
        for each in report.ended:
            if each.worker is not None:
                notifier.send(Notice("ended", project, each.run, each.worker))
        await notifier.flushed()
    return Stopped(
        [each.run for each in report.ended],
        {run: str(error) or type(error).__name__ for run, error in report.failed},
    )
