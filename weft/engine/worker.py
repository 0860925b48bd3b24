"""A worker: this process's right to drive runs, and the runs that it drives.

It registers under a lease and a death lock, starts runs born claimed, claims queued and orphaned ones, obeys stops,
and gives everything back when it leaves. What one run does: `executor.py`. What is due and who died: `waker.py`,
`sweeper.py`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import anyio

from weft import clock
from weft.engine.calls import Calls
from weft.engine.claiming import Claimer
from weft.engine.executor import End, Execution
from weft.engine.journal_writer import JournalWriter
from weft.engine.programs import Inputs, ProjectCode
from weft.engine.retrying import retrying
from weft.engine.starter import Starter
from weft.engine.sweeper import Sweeper
from weft.engine.waker import Waker
from weft.flow.events import Event, ExecutionStarted, LogLine, decode, encode
from weft.lang.graph import Program
from weft.log import get_logger
from weft.settings import EngineSettings
from weft.store.notify import Listener, Notice, Notifier
from weft.store.pool import CONNECTION_LOST, Database
from weft.store.runs import journal, runs, waits, workers
from weft.store.runs import tags as tag_rows
from weft.store.runs.runs import Fence, NewRun
from weft.store.runs.scopes import Ended
from weft.store.runs.waits import Answered

LOOK_AGAIN = 1.0
"""Seconds between two looks at the store that no notice asked for: a notice may be lost, and the store never is."""

REMEMBERED_ENDS = 10_000

log = get_logger("weft.worker")


class Worker:
    """Made by `open_worker`. `executions` are the runs that this process drives now."""

    def __init__(
        self,
        database: Database,
        projects: Sequence[ProjectCode],
        settings: EngineSettings,
        worker: UUID,
        notifier: Notifier,
        *,
        secret: bytes,
        concurrency: int,
        claims: bool,
    ) -> None:
        self.database = database
        self.settings = settings
        self.value_limit = settings.value_limit
        self.secret = secret
        self.id = worker
        self.notifier = notifier
        self.executions: dict[UUID, Execution] = {}
        self.listeners: list[Callable[[UUID, Sequence[Event]], None]] = []
        self.told_parked: list[Callable[[Fence, int], None]] = []
        self.clock_ahead = timedelta()
        self.broken = False
        self._projects = {project.number: project for project in projects}
        self.writer = JournalWriter(database, worker, self.executions, self.tell_ended)
        self.starter = Starter(database, worker)
        self.waker = Waker(database, list(self._projects), self.tell_ended, self.tell_answered)
        self.claimer = Claimer(
            database,
            self,
            worker,
            self._projects,
            self.executions,
            concurrency=concurrency,
            claims=claims,
            taken=self._take,
            resumed=self._heed_early_end,
            told=self.tell_ended,
        )
        self.calls = Calls(
            database,
            self.claimer,
            stop_asked=self._stop_asked,
            begin_child=self._begin_child,
            child_started=self._born,
        )
        self.sweeper = Sweeper(
            database,
            worker,
            list(self._projects),
            own=lambda: None if self.claimer.claims else self.claimer.own,
            told=self._hear,
            ready=self.claimer.look,
            suspects=self.claimer.look_for_suspects,
            freed=self._freed,
        )
        self._ends: dict[UUID, asyncio.Future[End | None]] = {}
        self._notices_now = asyncio.Event()
        self._behind: set[asyncio.Future[Any]] = set()
        self._left: set[asyncio.Task[None]] = set()
        self._ended_early: dict[UUID, None] = {}

    # --- starting -----------------------------------------------------------------------------------------

    async def start(
        self,
        project: int,
        program: Program,
        *,
        selection: dict[str, Any] | None = None,
        tags: Sequence[str] = (),
        deadline: timedelta | None = None,
    ) -> UUID:
        """Start a run that this worker drives. Returns its id once it is saved; raises `SelectionRefused` before."""
        execution, new = await self._begin(project, program, selection, deadline)
        with self.claimer.starting():
            run = await self._start(project, new, tags)
            self._take(execution, Fence(project, run, self.id, 1))
        self._born(execution, Fence(project, run, self.id, 1), len(new.events) + bool(tags))
        if deadline is not None:
            self.waker.look()
        return run

    async def _start(self, project: int, new: NewRun, tags: Sequence[str]) -> UUID:
        if not tags:
            return await self.starter.start(project, new)
        async with self.database.transaction() as connection:
            return await tag_rows.start_tagged(connection, project, self.id, new, list(tags))

    async def _begin(
        self, project: int, program: Program, selection: dict[str, Any] | None, deadline: timedelta | None
    ) -> tuple[Execution, NewRun]:
        code = self._projects[project]
        ready = code.ready(program, selection)
        await self.starter.store_program(project, program)
        execution = Execution(self, ready, code.key, selection)
        events = execution.begin(ExecutionStarted(code.key, program.hash, program.entry, selection))
        return execution, NewRun(program.hash, program.entry, events, execution.state.open_text(), deadline)

    async def _begin_child(self, project: int, path: str, inputs: Inputs) -> tuple[Execution, NewRun]:
        return await self._begin(project, self._projects[project].compile(path, inputs), None, None)

    def _born(self, execution: Execution, fence: Fence, saved: int) -> None:
        self._take(execution, fence)
        execution.born(fence, saved)
        self._heed_early_end(fence.run)

    async def ended(self, run: UUID, project: int) -> End:
        """Waits until the run has ended, here or anywhere."""
        while True:
            here = self._ends.get(run)
            if here is not None and (end := await asyncio.shield(here)) is not None:
                return end
            row = await retrying(self.database, lambda c: runs.status(c, project, run))
            if row is not None and row.ended_at is not None:
                return End(row.status, row.error, row.reason)
            if self._ends.get(run) is here:
                await asyncio.sleep(LOOK_AGAIN / 5)

    # --- what an execution asks (executor.Host) -----------------------------------------------------------

    def now(self) -> datetime:
        return clock.now() + self.clock_ahead

    async def journal_after(self, fence: Fence, after: int) -> list[Event]:
        rows = await retrying(self.database, lambda c: journal.read(c, fence.project, fence.run, after))
        return [decode(event) for row in rows for event in json.loads(row.events)]

    def _stop_asked(self, project: int) -> None:
        self.waker.look()
        self.notifier.send(Notice("stop", project, None, None))

    async def look_whether_ended(self, fence: Fence) -> bool:
        row = await retrying(self.database, lambda c: runs.status(c, fence.project, fence.run))
        ended = row is None or row.ended_at is not None
        if ended:
            self._stop_here(fence.run)
        return ended

    def shown(self, run: UUID, events: Sequence[Event]) -> None:
        for listener in self.listeners:
            listener(run, events)

    def finished(self, execution: Execution, end: End | None) -> None:
        assert execution.fence is not None
        run = execution.fence.run
        if self.executions.get(run) is execution:
            del self.executions[run]
            future = self._ends.pop(run, None)
            if future is not None and not future.done():
                future.set_result(end)
        if end is not None:
            self.claimer.own.discard(run)
        if execution.bodies:
            self.keep(self._reap(execution))
        if self.claimer.claims:
            self.claimer.look()

    def parked(self, execution: Execution) -> None:
        fence = execution.owned()
        self.keep(self.claimer.keep_snapshot(execution))
        if self.executions.get(fence.run) is execution:
            del self.executions[fence.run]
            self._ends.pop(fence.run).set_result(None)
        for told in self.told_parked:
            told(fence, execution.next_seq)
        self.waker.look()
        self.claimer.look()

    def aftermath(self, fence: Fence, event: Event) -> None:
        text = encode(event)
        self.keep(retrying(self.database, lambda c: journal.aftermath(c, fence.project, fence.run, text)))

    def keep(self, work: Awaitable[Any]) -> None:
        """Let this go on by itself; asyncio alone would forget it."""
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def _reap(self, execution: Execution) -> None:
        """Bodies of a stopped run have the grace time to leave; one that stays is named, and its result is dropped."""
        bodies = dict(execution.bodies)
        if not bodies:
            return
        _, left = await asyncio.wait(bodies.values(), timeout=self.settings.grace.total_seconds())
        assert execution.fence is not None
        for (node, frames), task in bodies.items():
            if task in left:
                self.aftermath(
                    execution.fence,
                    LogLine(
                        node,
                        frames,
                        "warning",
                        "the body did not end within the grace time and was left behind",
                    ),
                )
                self._left.add(task)
                task.add_done_callback(self._left.discard)

    # --- being told ---------------------------------------------------------------------------------------

    def heard(self, notice: Notice) -> None:
        """A notice from the store. A hint only: what it says is looked up."""
        match notice.kind:
            case "ready":
                if notice.project in self._projects:
                    self.claimer.look()
            case "ended":
                if notice.worker == self.id and notice.run is not None:
                    self._stop_here(notice.run)
            case "answered":
                if notice.worker == self.id and notice.run is not None:
                    self._answered_here(notice.run)
            case "stop" | "due":
                self.waker.look()

    def look_everywhere(self) -> None:
        """After a gap in the notices, look at everything that one could have been about."""
        self.claimer.look()
        self._hear()
        self.waker.look()

    def _hear(self) -> None:
        self._notices_now.set()

    def tell_ended(self, ended: Iterable[Ended]) -> None:
        """These runs were ended by this process: their owners hear it."""
        for each in ended:
            if each.worker == self.id:
                self._stop_here(each.run)
            elif each.worker is not None:
                self.notifier.send(Notice("ended", each.project, each.run, each.worker))

    def tell_answered(self, answered: Iterable[Answered]) -> None:
        """Waits of these runs have ended: who owns the run hears it, and one that nobody owns can be claimed."""
        for each in answered:
            if each.worker == self.id:
                self._answered_here(each.run)
            elif each.worker is not None:
                self.notifier.send(Notice("answered", each.project, each.run, each.worker))
            else:
                self.notifier.send(Notice("ready", each.project, None, None))
                self.claimer.look()

    def _answered_here(self, run: UUID) -> None:
        execution = self.executions.get(run)
        if execution is not None:
            execution.catch_up()

    def _stop_here(self, run: UUID) -> None:
        execution = self.executions.get(run)
        if execution is not None:
            execution.stop()
        else:
            self._ended_early[run] = None
            if len(self._ended_early) > REMEMBERED_ENDS:
                del self._ended_early[next(iter(self._ended_early))]

    def _heed_early_end(self, run: UUID) -> None:
        """A stop may be told between the statement that gave us the run and our first look at it."""
        if run in self._ended_early:
            self._stop_here(run)

    def _take(self, execution: Execution, fence: Fence) -> None:
        self.executions[fence.run] = execution
        if not self.claimer.claims:
            self.claimer.own.add(fence.run)
        self._ends.setdefault(fence.run, asyncio.get_running_loop().create_future())

    # --- the loops ----------------------------------------------------------------------------------------

    async def loops(self) -> None:
        """Everything that goes on beside the runs, until cancelled."""
        async with anyio.create_task_group() as group:
            for loop in (
                self.writer.run,
                self.starter.run,
                self.waker.run,
                self.notice_loop,
                self.renew_loop,
                self.sweeper.run,
                self.claimer.run,
            ):
                group.start_soon(loop)

    async def notice_loop(self) -> None:
        while True:
            await self._notices_now.wait()
            self._notices_now.clear()
            # Heeded before it is looked at: an answer that comes after that is a notice of its own.
            told = await retrying(self.database, lambda c: workers.notices(c, self.id))
            if told:
                await retrying(self.database, partial(workers.heed, worker=self.id, told=told))
            for each in told:
                if each.kind == "ended":
                    self._stop_here(each.run)
                else:
                    self._answered_here(each.run)

    async def renew_loop(self) -> None:
        while True:
            await asyncio.sleep(self.settings.renew.total_seconds())
            await self.set_clock()
            if not await retrying(self.database, lambda c: workers.renew(c, self.id)):
                log.warning("the lease lapsed; whatever others took over is let go")
                for execution in list(self.executions.values()):
                    execution.stop()
                await retrying(self.database, lambda c: workers.revive(c, self.id))

    async def set_clock(self) -> None:
        """See how far the store's clock is ahead of ours: waits are due by the store's."""
        asked = clock.now()
        told = await retrying(self.database, waits.now)
        self.clock_ahead = told - (asked + (clock.now() - asked) / 2)

    def _freed(self, project: int) -> None:
        self.notifier.send(Notice("ready", project, None, None))
        self.claimer.look()

    # --- leaving ------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Claim and start nothing more, let bodies end for the grace time, save what they did, give the runs back.
        Stops are obeyed all the while, and bodies that were stopped have their grace time too."""
        self.claimer.claims = False
        self.claimer.own.clear()
        for execution in self.executions.values():
            execution.drain()
        bodies = [task for execution in self.executions.values() for task in execution.bodies.values()]
        if bodies:
            await asyncio.wait(bodies, timeout=self.settings.grace.total_seconds())
        # Where a loop has broken nothing more is written, so there is nothing to wait for.
        with anyio.move_on_after(0 if self.broken else self.settings.grace.total_seconds()):
            await self.writer.flushed()
            # Bodies of stopped runs may still be cleaning up, and what they say of it is still to be saved.
            while self._behind:
                await asyncio.wait(self._behind)
        left = list(self.executions.values())
        for execution in left:
            execution.abandon()
        fences = [execution.fence for execution in left if execution.fence is not None]
        self.executions.clear()
        try:
            async with self.database.connection() as connection:
                await runs.release(connection, fences)
        except Exception as error:
            # Whatever it is (the store is away, its disk is full): this process leaves, and others notice that.
            log.warning("the runs could not be given back; they are taken over", error=str(error))
            return
        for fence in fences:
            self.notifier.send(Notice("ready", fence.project, None, None))
        await self.notifier.flushed()

    async def sign_off(self) -> None:
        try:
            async with self.database.connection() as connection:
                await workers.leave(connection, self.id)
        except CONNECTION_LOST as error:
            log.warning("the worker could not sign off; its lease lapses", error=str(error))


def _collect_less_often() -> None:
    """A worker makes and drops some hundred objects a firing and keeps many runs: collecting as often as Python does by
    itself would walk over all of them again and again, for a seventh of the processor."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@asynccontextmanager
async def open_worker(
    database: Database,
    projects: Sequence[ProjectCode],
    settings: EngineSettings,
    *,
    concurrency: int = 100,
    claims: bool = True,
) -> AsyncIterator[Worker]:
    """Register, run the loops, and on leaving drain and sign off. `claims=False` drives only what it starts itself."""
    _collect_less_often()
    async with database.connection() as connection:
        secret = await waits.secret(connection)
        worker_id = await workers.register(
            connection,
            host=socket.gethostname(),
            pid=os.getpid(),
            projects=[project.number for project in projects] if claims else [],
            lease=settings.lease,
        )
    async with Notifier(database) as notifier, workers.death_lock(database, worker_id):
        worker = Worker(
            database,
            projects,
            settings,
            worker_id,
            notifier,
            secret=secret,
            concurrency=concurrency,
            claims=claims,
        )
        await worker.set_clock()
        async with Listener(database, worker.heard, worker.look_everywhere), _driving(worker):
            yield worker
        with anyio.CancelScope(shield=True):
            await worker.sign_off()


@asynccontextmanager
async def _driving(worker: Worker) -> AsyncIterator[None]:
    """The loops go on until the block has ended and the worker has drained. A loop that breaks ends the block."""
    loops = asyncio.create_task(worker.loops())
    block = anyio.CancelScope()

    def over(loops: asyncio.Task[None]) -> None:
        # Looked at here, since what the block raises is told before what broke a loop.
        if loops.cancelled() or loops.exception():
            worker.broken = True
            block.cancel()

    loops.add_done_callback(over)
    try:
        with block:
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await worker.drain()
    finally:
        loops.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([loops])
    if not loops.cancelled():
        loops.result()
