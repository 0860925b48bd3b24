"""`weft stop`: cancel runs by id, by ids on stdin, or all live runs of this project with a tag."""

from __future__ import annotations

import os
import stat
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from weft.cli.output import Output, is_terminal, note
from weft.cli.session import current_project, opened
from weft.cli.shell import COMPLETED, FAILED, NOT_FOUND
from weft.errors import UsageError
from weft.rules.tags import normalise
from weft.service import listing, stopping
from weft.service.ids import find_runs
from weft.service.listing import RunRow
from weft.service.stopping import Stopped
from weft.store.pool import Database


@dataclass(frozen=True, slots=True)
class Request:
    runs: list[str]
    tag: str | None
    dry_run: bool
    yes: bool


async def stop(request: Request, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    if request.tag is not None:
        if request.runs:
            raise UsageError("give run ids or --tag, not both")
        return await _by_tag(request, normalise(request.tag), out, database_url)
    pieces = _pieces(request.runs)
    async with opened(database_url) as store:
        return await _by_id(store.database, await find_runs(store.database, pieces), request, out)


def _pieces(runs: Sequence[str]) -> list[str]:
    """The ids of the command line; `-`, or none beside a pipe or a file as stdin, reads them from there."""
    if runs and "-" not in runs:
        return list(runs)
    if not runs and not _is_fed(sys.stdin):
        raise UsageError("which runs? give their ids, --tag TAG, or ids on stdin", hint="weft executions lists runs.")
    if is_terminal(sys.stdin):
        note("run ids, one a line, then Ctrl-D:")
    read = [] if sys.stdin is None else sys.stdin.buffer.read().decode(errors="replace").split()
    pieces = [piece for piece in runs if piece != "-"] + read
    if not pieces:
        raise UsageError("no run id came on stdin")
    return pieces


def _is_fed(stream: object) -> bool:
    """Whether somebody pipes into this process: only then may it read without being told to, or it could hang."""
    try:
        mode = os.fstat(stream.fileno()).st_mode  # type: ignore[attr-defined]  # None and closed streams raise too
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


async def _by_id(database: Database, rows: list[RunRow], request: Request, out: Output) -> int:
    live = [row for row in rows if not row.ended]
    over = [row for row in rows if row.ended]
    if request.dry_run:
        for row in live:
            _tell(out, row.run, row.status, stopped=False)
        note(f"{_count(live)} would be stopped")
    else:
        of_project: defaultdict[int, list[UUID]] = defaultdict(list)
        for row in live:
            of_project[row.project].append(row.run)
        stopped = Stopped()
        for project, runs in of_project.items():
            part = await stopping.stop_runs(database, project, runs)
            stopped.runs += part.runs
            stopped.failed |= part.failed
        done = set(stopped.runs)
        for run in stopped.runs:
            _tell(out, run, "cancelled", stopped=True)
        missed = [row for row in live if row.run not in done and row.run not in stopped.failed]
        over += [await listing.refreshed(database, row) for row in missed]
        if _tell_failures(stopped):
            out.flush()
            return FAILED
    for row in over:
        if out.json:
            _tell(out, row.run, row.status, stopped=False)
        note(f"run {row.run} had already ended: {row.status}" + (f" ({row.reason})" if row.reason else ""))
    out.flush()
    return NOT_FOUND if over else COMPLETED


async def _by_tag(request: Request, tag: str, out: Output, database_url: str | None) -> int:
    project = current_project()
    async with opened(database_url) as store:
        database = store.database
        live = await stopping.live_tagged(database, project.id, tag)
        carry = f"{_count(live)} of {project.name} {'carries' if len(live) == 1 else 'carry'} the tag {tag}"
        if request.dry_run:
            for run in live:
                _tell(out, run, "live", stopped=False)
            out.flush()
            note(f"{carry} and would be stopped")
            return COMPLETED
        note(carry)
        if not live:
            return COMPLETED
        if not request.yes and not _agreed(f"Stop {_count(live)}?"):
            note("nothing was stopped")
            return FAILED
        stopped = await stopping.stop_tagged(database, project.id, tag)
        left = await stopping.live_tagged(database, project.id, tag)
    for run in stopped.runs:
        _tell(out, run, "cancelled", stopped=True)
    out.flush()
    failed = _tell_failures(stopped)
    note(f"stopped {_count(stopped.runs)}; {len(left)} left with the tag {tag}")
    return FAILED if failed else COMPLETED


def _agreed(question: str) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError(
            "stopping by tag asks first, and there is no terminal to ask on",
            hint="Add --yes to stop them, or --dry-run to see which they are.",
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _tell(out: Output, run: UUID, status: str, *, stopped: bool) -> None:
    if out.json:
        out.value({"run": str(run), "status": status, "stopped": stopped})
    else:
        out.line(f"{run}  {status}")


def _tell_failures(stopped: Stopped) -> bool:
    for run, why in stopped.failed.items():
        note(f"error: run {run} could not be stopped: {why}", "red")
    return bool(stopped.failed)


def _count(runs: Sequence[object]) -> str:
    return f"{len(runs)} live run{'' if len(runs) == 1 else 's'}"
