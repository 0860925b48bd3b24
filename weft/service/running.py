"""Starting runs and driving them: `open_runtime` is a worker inside this process, `start_detached` only queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from uuid import UUID

from weft.engine.executor import End
from weft.engine.programs import ProjectCode
from weft.engine.worker import Worker, open_worker
from weft.flow.events import Event, ExecutionStarted, encode
from weft.flow.selection import Selection, select
from weft.lang.graph import Program
from weft.service.compiling import child_program
from weft.service.opening import Store
from weft.service.projects import LoadedProject
from weft.settings import Project
from weft.store.notify import Notice, Notifier
from weft.store.runs import programs, runs
from weft.store.runs import tags as tag_rows
from weft.store.runs.runs import NewRun

__all__ = ["End", "Runtime", "open_runtime", "start_detached"]


class Runtime:
    """A worker in this process, spoken to in the caller's terms. Made by `open_runtime`."""

    def __init__(self, worker: Worker, numbers: dict[str, int]) -> None:
        self.worker = worker
        self._numbers = numbers

    async def start(
        self,
        project: Project,
        program: Program,
        *,
        selection: Selection | None = None,
        tags: Sequence[str] = (),
        deadline: timedelta | None = None,
    ) -> UUID:
        """Start a run here, born claimed. `SelectionRefused` before anything is written."""
        chosen = selection.to_json() if selection is not None else None
        return await self.worker.start(
            self._numbers[project.id], program, selection=chosen, tags=tags, deadline=deadline
        )

    async def ended(self, project: Project, run: UUID) -> End:
        """Waits for the run's end, wherever it is driven."""
        return await self.worker.ended(run, self._numbers[project.id])

    def on_saved(self, listener: Callable[[UUID, Sequence[Event]], None]) -> None:
        """Call this with the events of every run driven here, after their commit and in order."""
        self.worker.listeners.append(listener)

    def on_parked(self, listener: Callable[[UUID, int, int], None]) -> None:
        """Call this with each run that leaves this process because it waits, its project's number, and the number that
        its next event will have. It may go on here or in another process."""
        self.worker.told_parked.append(lambda fence, next_seq: listener(fence.run, fence.project, next_seq))

    async def serve_until(self, stop: asyncio.Event) -> None:
        """Claim and drive runs until `stop` is set; leaving `open_runtime` then drains."""
        await stop.wait()


@asynccontextmanager
async def open_runtime(
    store: Store, loaded: Sequence[LoadedProject], *, concurrency: int | None = None, claims: bool = False
) -> AsyncIterator[Runtime]:
    """A worker for these projects. `claims=False`: only for the runs that are started through it."""
    numbers = {each.project.id: await store.project_number(each.project) for each in loaded}
    codes = [
        ProjectCode(numbers[each.project.id], each.project.id, each.registry, partial(child_program, each))
        for each in loaded
    ]
    async with open_worker(
        store.database,
        codes,
        store.settings.engine,
        concurrency=concurrency or store.settings.concurrency,
        claims=claims,
    ) as worker:
        yield Runtime(worker, numbers)


async def start_detached(
    store: Store,
    project: Project,
    program: Program,
    *,
    selection: Selection | None = None,
    tags: Sequence[str] = (),
    deadline: timedelta | None = None,
) -> UUID:
    """Queue a run for whatever worker serves the project. Returns its id once it is saved."""
    if selection is not None:
        select(program, selection)
    number = await store.project_number(project)
    chosen = selection.to_json() if selection is not None else None
    first = ExecutionStarted(project.id, program.hash, program.entry, chosen)
    new = NewRun(program.hash, program.entry, [encode(first)], "[]", deadline)
    async with store.database.transaction() as connection:
        await programs.put(connection, number, program.hash, program.text())
        if tags:
            run = await tag_rows.start_tagged(connection, number, None, new, list(tags))
        else:
            [run] = await runs.start(connection, number, None, [new])
    async with Notifier(store.database) as notifier:
        notifier.send(Notice("ready", number, None, None))
        await notifier.flushed()
    return run
