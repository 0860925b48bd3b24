"""`weft run`: compile a program, start it in this process, show it, and end as it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from weft.cli.commands.check import show_broken_nodes, show_diagnostics
from weft.cli.flags import assignments, duration
from weft.cli.following import LOOK_AGAIN, Follower, outside
from weft.cli.output import Output, note
from weft.cli.progress import Progress
from weft.cli.session import opened, who_goes_on
from weft.cli.shell import COMPLETED, ENDINGS, INTERRUPTED, NOT_ENDED
from weft.cli.speaking import how_to_end, named, what
from weft.errors import StoreUnreachable
from weft.flow.selection import Selection, select
from weft.lang.graph import Program
from weft.rules.tags import check, normalise
from weft.service import compiling, doors
from weft.service.ids import find_run, short
from weft.service.projects import LoadedProject, load_project

if TYPE_CHECKING:
    from weft.service.opening import Store
    from weft.service.running import End, Runtime
    from weft.service.why import Why

REDRAW = 0.1
"""Seconds between two drawings of the status line."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, as it was typed."""

    file: Path
    targets: list[str]
    before: list[str]
    from_values: list[str]
    emits: list[str]
    tags: list[str]
    detach: bool
    deadline: str | None


@dataclass(frozen=True, slots=True)
class _Start:
    """What is to be started."""

    loaded: LoadedProject
    program: Program
    selection: Selection | None
    tags: list[str]
    deadline: timedelta | None


async def run(request: Request, as_json: bool, database_url: str | None) -> int:
    out = Output(json=as_json)
    deadline = None if request.deadline is None else duration(request.deadline, "--deadline")
    chosen = Selection(
        tuple(request.targets),
        tuple(request.before),
        assignments(request.from_values, "--from"),
        assignments(request.emits, "--emit"),
    )
    tags = list(dict.fromkeys(normalise(tag) for tag in request.tags))
    if tags:
        check(tags)
    file = compiling.entry_file(request.file)
    loaded = load_project(file)
    checked = compiling.check(file, loaded)
    show_broken_nodes(loaded, out, to_stdout=as_json)
    show_diagnostics(checked, out, to_stdout=as_json)
    out.flush()
    program = compiling.required_program(checked)
    selection = chosen if chosen.to_json() else None
    if selection is not None:
        select(program, selection)
    start = _Start(loaded, program, selection, tags, deadline)
    async with opened(database_url, file) as store:
        if request.detach:
            return await _detach(store, start, out)
        return await _drive(store, start, out)


async def _detach(store: Store, start: _Start, out: Output) -> int:
    from weft.service.running import start_detached

    run = await start_detached(
        store,
        start.loaded.project,
        start.program,
        selection=start.selection,
        tags=start.tags,
        deadline=start.deadline,
    )
    if out.json:
        out.value({"run": str(run), "status": "queued"})
    else:
        out.line(str(run))
    out.flush()
    row = await find_run(store.database, str(run))
    note(await who_goes_on(store.database, row))
    return COMPLETED


async def _drive(store: Store, start: _Start, out: Output) -> int:
    from weft.service.running import End, open_runtime

    interrupted = asyncio.Event()
    _heed_signals(interrupted)
    stands: Why | None = None
    async with open_runtime(store, [start.loaded]) as runtime:
        progress = Progress(out)
        follower = Follower.of(store, runtime, progress, json=out.json)
        runtime.on_saved(follower.saved)
        run = await runtime.start(
            start.loaded.project,
            start.program,
            selection=start.selection,
            tags=start.tags,
            deadline=start.deadline,
        )
        end = await _follow(runtime, start, run, follower, interrupted)
        if not isinstance(end, End):
            stands, end = end, None
    if end is None:
        row = await find_run(store.database, str(run))
        if not row.ended:
            goes_on = await who_goes_on(store.database, row)
            if out.json:
                out.value(_end_json(run, row.status, None))
            if stands is not None:
                address = await doors.address(store.database)
                note(f"run {run}: {_outside_text(stands, address)}; {goes_on}")
                return NOT_ENDED
            note(f"run {run} is {row.status}: {goes_on}")
            return INTERRUPTED
        status, why = row.status, row.error or row.reason
    else:
        status, why = end.status, end.error or end.reason
    if out.json:
        out.value(_end_json(run, status, why))
    progress.tell_end(status, why)
    if status == "failed":
        note(f"hint: weft events {short(run)} shows what happened.")
    return ENDINGS[status]


async def _follow(
    runtime: Runtime, start: _Start, run: UUID, follower: Follower, interrupted: asyncio.Event
) -> End | Why | None:
    """The run's end, what only the outside can end, or None after Ctrl-C."""
    ending = asyncio.create_task(runtime.ended(start.loaded.project, run))
    stopping = asyncio.create_task(interrupted.wait())
    tasks: set[asyncio.Task[Any]] = {ending, stopping}
    progress, stands = follower.progress, None
    try:
        while not ending.done() and not stopping.done() and stands is None:
            pause = REDRAW if progress.live else LOOK_AGAIN
            await asyncio.wait(tasks, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            progress.tick()
            if not ending.done():
                # While the store is away the worker tries again for as long as it takes, and so does who follows.
                with suppress(StoreUnreachable):
                    stands = await follower.look(run)
    finally:
        await follower.withdraw()
        progress.close()
        stopping.cancel()
    if ending.done():
        await follower.news()
        return ending.result()
    ending.cancel()
    if stands is None:
        note("interrupted: giving the run back; once more ends at once")
    return stands


def _outside_text(stands: Why, address: str | None) -> str:
    """One line: what only the outside can end, and how."""
    return "; ".join(f"{named(each)} waits for {what(each)}: {how_to_end(each, address)}" for each in outside(stands))


def _heed_signals(interrupted: asyncio.Event) -> None:
    """The first Ctrl-C or SIGTERM lets go of the run in good order; a second one ends the process at once."""

    def heed() -> None:
        if interrupted.is_set():
            sys.stdout.flush()
            os._exit(INTERRUPTED)
        interrupted.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heed)


def _end_json(run: UUID, status: str, why: str | None) -> dict[str, Any]:
    return {
        "run": str(run),
        "status": status,
        "error": why if status == "failed" else None,
        "reason": why if status == "cancelled" else None,
    }
