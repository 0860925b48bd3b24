"""`weft executions`: runs, newest first, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from weft import clock
from weft.cli.flags import since
from weft.cli.lines import columns, iso, one_line
from weft.cli.output import STATUS_COLOURS, Output
from weft.cli.session import opened
from weft.errors import UsageError
from weft.lang.diagnostics import nearest
from weft.rules.tags import normalise
from weft.service import listing
from weft.service.listing import STATUSES, RunRow
from weft.service.shapes import run_json


@dataclass(frozen=True, slots=True)
class Filters:
    statuses: list[str]
    tags: list[str]
    since: str | None
    node: str | None
    project: str | None
    limit: int
    offset: int


async def executions(filters: Filters, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    for status in filters.statuses:
        if status not in STATUSES:
            close = nearest(status, STATUSES)
            raise UsageError(
                f"--status {status!r} is no status" + (f"; did you mean {close}?" if close else ""),
                hint=f"A run is one of {', '.join(STATUSES)}.",
            )
    started = None if filters.since is None else since(filters.since, clock.now())
    tags = [normalise(tag) for tag in filters.tags]
    async with opened(database_url) as store:
        found = await listing.executions(
            store.database,
            project=filters.project,
            statuses=filters.statuses,
            tags=tags,
            since=started,
            node=filters.node,
            limit=filters.limit,
            offset=filters.offset,
        )
    for row, line in zip(found, lines(found), strict=True):
        if json:
            out.value(run_json(row))
        else:
            out.line(line, STATUS_COLOURS.get(row.status))
    out.flush()
    if not found and not json:
        out.note("no runs")
    elif len(found) == filters.limit and not json:
        out.note(f"hint: there may be more: --offset {filters.offset + filters.limit}")
    return 0


def lines(rows: list[RunRow]) -> list[str]:
    """Run, status, started, entry, project, and last the tags in the order claimed."""
    return columns(
        [
            [
                str(row.run),
                row.status,
                iso(row.started_at),
                one_line(row.entry),
                one_line(row.project_name),
                ",".join(row.tags),
            ]
            for row in rows
        ]
    )
