"""One run, from claim to end: the fold, the bodies, and what of it is saved.

An `Execution` turns what the fold says is due into events, starts the bodies, and hands events to the journal writer.
It never touches the store by itself. A body with outside effects starts only when its `node_started` is saved; a `pure`
one starts at once. Nothing here decides what is due (`weft.flow`), when it is written (`journal_writer`) or which runs
this process drives (`worker`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from weft.engine.calls import Calls
from weft.engine.context import RunContext
from weft.engine.journal_writer import JournalWriter
from weft.engine.programs import ReadyProgram
from weft.engine.suspending import Registrar
from weft.engine.unsaved import Unsaved
from weft.errors import InputError, NodeError, Parked
from weft.flow.events import (
    Event,
    ExecutionCompleted,
    ExecutionFailed,
    Key,
    NodeCompleted,
    NodeFailed,
    NodeKicked,
    NodeResumed,
    NodeSkipped,
    NodeStarted,
    NodeSuspended,
    SuspensionResolved,
    encode,
)
from weft.flow.state import Kick, Resume, RunState, Skip, Start
from weft.log import get_logger
from weft.nodes.firing.body import run_body
from weft.nodes.firing.failures import failure_of
from weft.nodes.firing.record import partly_happened
from weft.nodes.firing.suspending import Asked
from weft.store.runs.journal import Saved, Write
from weft.store.runs.runs import Fence

LOOK_WHETHER_ENDED = 1.0
"""Seconds."""

log = get_logger("weft.run")


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended: a failed one with the error's text, a cancelled one with the reason."""

    status: str
    error: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class OwnEnd:
    """How a run ends by itself."""

    status: Literal["completed", "failed"]
    error: str | None = None


class Host(Protocol):
    """What an execution needs of the process that drives it."""

    writer: JournalWriter
    value_limit: int
    secret: bytes
    calls: Calls

    async def look_whether_ended(self, fence: Fence) -> bool:
        """Ask the store whether the run has ended; if it has, the execution is stopped."""

    def shown(self, run: UUID, events: Sequence[Event]) -> None:
        """These events are saved now."""

    def finished(self, execution: Execution, end: End | None) -> None:
        """The run left this process: with its end, or None when it went on elsewhere or was ended by others."""

    def parked(self, execution: Execution) -> None:
        """The run waits for something, and holds nothing here any more."""

    async def journal_after(self, fence: Fence, after: int) -> list[Event]:
        """The run's saved events numbered above `after`."""

    def keep(self, work: Awaitable[Any]) -> None:
        """Let this go on by itself."""

    def now(self) -> datetime:
        """The store's clock, by which waits are due."""

    def aftermath(self, fence: Fence, event: Event) -> None:
        """Something came after the run had ended."""


class Execution:
    """A run that this process drives. Everything happens on the event loop; no method waits."""

    def __init__(
        self, host: Host, program: ReadyProgram, project_key: str, selection: dict[str, Any] | None
    ) -> None:
        self.selection = selection
        self.host = host
        self.program = program
        self.project_key = project_key
        self.state = RunState(program.plan)
        self.next_seq = 1
        self.stopped = False
        self.draining = False
        self.fence: Fence | None = None
        self.bodies: dict[Key, asyncio.Task[None]] = {}
        self.contexts: dict[Key, RunContext] = {}
        self.snapshot_after = 0
        self._unsaved = Unsaved()
        self._in_write: Unsaved | None = None
        self._ends: OwnEnd | None = None
        self._advance_asked = False
        self._again: set[Key] = set()
        self._elsewhere: set[int] = set()
        self._catching_up = False
        self._process = os.getpid()

    @property
    def run(self) -> UUID:
        return self.owned().run

    def owned(self) -> Fence:
        assert self.fence is not None, "a body never runs before its run is saved"
        return self.fence

    # --- coming to life -----------------------------------------------------------------------------------

    def begin(self, first: Event) -> list[str]:
        """The first events of a run that does not exist yet, encoded: they are saved with its start."""
        self._record(first)
        self._settle()
        self._in_write, self._unsaved = self._unsaved, Unsaved()
        return self._in_write.encoded

    def born(self, fence: Fence, saved: int) -> None:
        """The start is saved: the run exists, is ours, and goes on."""
        self.fence = fence
        self.next_seq = 1 + saved
        self._release()
        self._advance()

    def replay(self, fence: Fence, events: Sequence[Event], next_seq: int) -> None:
        """Go on with a run that others began: fold what the state does not hold yet, run again what was under way."""
        self.fence = fence
        self.next_seq = next_seq
        state = self.state
        for event in events:
            state.apply(event)
        if state.ended is not None:
            # Between the claim and the look at its journal it was ended.
            self.stop()
            return
        for key in list(state.running):
            runtime = self.program.node(key[0])
            if runtime.rerun:
                self._record(NodeResumed(*key, token=None))
                self._again.add(key)
                self._unsaved.starting.append(key)
            else:
                self._record(NodeFailed(*key, error=failure_of(partly_happened(key[0]))))
        self._advance()

    # --- the fold -----------------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """A body did something: fold it in, and look soon at what it makes due. Soon, not now: what the body's last
        call emits is then saved together with its completion."""
        self._record(event)
        if not self._advance_asked:
            self._advance_asked = True
            asyncio.get_running_loop().call_soon(self._advance_soon)

    def _advance_soon(self) -> None:
        self._advance_asked = False
        if not self.stopped:
            self._advance()

    def _record(self, event: Event) -> None:
        self.state.apply(event)
        unsaved = self._unsaved
        unsaved.events.append(event)
        unsaved.encoded.append(encode(event))

    def _settle(self) -> None:
        """Turn all that is due into events, until nothing is."""
        while steps := self.state.due():
            for step in steps:
                node, frames = step.node, step.frames
                if type(step) is Start:
                    self._record(NodeStarted(node, frames))
                    if self.fence is not None and self.program.node(node).pure:
                        self._start_body((node, frames))
                    else:
                        self._unsaved.starting.append((node, frames))
                elif type(step) is Resume:
                    # Its start is saved already: this is one more turn of the same firing.
                    self._record(NodeResumed(node, frames, step.token))
                    self._again.add((node, frames))
                    self._start_body((node, frames))
                elif type(step) is Kick:
                    self._record(NodeKicked(node, frames))
                elif type(step) is Skip:
                    self._record(NodeSkipped(node, frames, step.reason))

    def _advance(self) -> None:
        try:
            if not self.draining:
                self._settle()
                outcome = self.state.outcome()
                if outcome is not None:
                    self._end_with(outcome.error)
        except Exception as error:
            self._break(error)
        if self._unsaved or self._can_park:
            self.host.writer.submit(self)

    @property
    def _can_park(self) -> bool:
        """Nothing of the run can go on here until one of its waits ends."""
        return self.state.idle and not (self.bodies or self.draining or self._catching_up or self.stopped)

    def _end_with(self, error: str | None) -> None:
        if error is None:
            self._ends = OwnEnd("completed")
            self._record(ExecutionCompleted())
        else:
            self._ends = OwnEnd("failed", error)
            self._record(ExecutionFailed(error))

    def _break(self, error: Exception) -> None:
        """A fault of weft's own ends this run, and no other; a run that nobody drives would hang for ever."""
        log.exception("a fault of weft's own ended a run", run=str(self.fence and self.fence.run))
        for task in self.bodies.values():
            task.cancel()
        self._unsaved.starting.clear()
        for key in [*self.state.running, *self.state.parked]:
            self._record(NodeFailed(*key, error={"message": "the run broke", "type": type(error).__name__}))
        self._end_with(f"a fault of weft's own: {type(error).__name__}: {error}")

    # --- saving -------------------------------------------------------------------------------------------

    def take_write(self) -> Write | None:
        assert self.fence is not None and self._in_write is None
        if self.stopped:
            return None
        unsaved, self._unsaved = self._unsaved, Unsaved()
        self._in_write = unsaved
        while self.next_seq in self._elsewhere:
            self._elsewhere.discard(self.next_seq)
            self.next_seq += 1
        parks = self._can_park and not unsaved.starting
        if not unsaved.encoded and not parks:
            self._release()
            return None
        ends = self._ends
        return Write(
            project=self.fence.project,
            run=self.fence.run,
            lease=self.fence.lease,
            events=unsaved.encoded,
            open_firings=self.state.open_text(),
            ends=ends.status if ends else None,
            error=ends.error if ends else None,
            after=self.next_seq - 1,
            waits=unsaved.waits,
            parks=parks,
        )

    def saved(self, write: Write, saved: Saved) -> None:
        between = range(write.after + 1, saved.next_seq)
        elsewhere = self._elsewhere.intersection(between)
        self._elsewhere -= elsewhere
        others_wrote = len(between) != len(write.events) + len(elsewhere)
        self.next_seq = saved.next_seq
        if self.stopped:
            self._in_write = None
            return
        self._release()
        if write.ends is not None:
            self.stopped = True
            self.host.finished(self, End(write.ends, error=write.error))
        elif saved.parked:
            self.stopped = True
            self.host.parked(self)
        elif others_wrote:
            self.catch_up(write.after)
        elif write.parks:
            self.host.writer.submit(self)

    def wrote_elsewhere(self, number: int) -> None:
        """The number of an event of this run's own that the writer did not write, lest it be taken for another's."""
        self._elsewhere.add(number)

    def catch_up(self, after: int | None = None) -> None:
        """Others wrote to the journal: an answer came. Read it, and go on with what it makes due."""
        if not self._catching_up and not self.stopped:
            self._catching_up = True
            self.host.keep(self._catch_up(self.next_seq - 1 if after is None else after))

    async def _catch_up(self, after: int) -> None:
        try:
            for event in await self.host.journal_after(self.owned(), after):
                if isinstance(event, SuspensionResolved) and not self._over:
                    self.state.apply(event)
        finally:
            self._catching_up = False
        if not self.stopped:
            self._advance()

    def refused(self, write: Write) -> None:
        """The run is no longer ours: it ended, or another worker has it. Nothing of this write was saved."""
        self._in_write = None
        if not self.stopped:
            self.stop()

    async def flush(self) -> None:
        """Returns when everything recorded so far is saved."""
        if self.stopped:
            raise asyncio.CancelledError
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsaved.flushes.append(done)
        self.host.writer.submit(self)
        await done

    def _release(self) -> None:
        """What was under way is saved: show it, start the bodies that waited for it, tell who waited."""
        assert self.fence is not None and self._in_write is not None
        saved, self._in_write = self._in_write, None
        if saved.events:
            self.host.shown(self.fence.run, saved.events)
        for key in saved.starting:
            if self.draining:
                break
            self._start_body(key)
        saved.told()

    # --- bodies -------------------------------------------------------------------------------------------

    def _start_body(self, key: Key) -> None:
        task = asyncio.create_task(self._body(key))
        self.bodies[key] = task

    async def _body(self, key: Key) -> None:
        error: BaseException | None = None
        asked: Asked | None = None
        try:
            await self._run_body(key)
        except Parked:
            asked = self.contexts[key].asked
        except asyncio.CancelledError:
            if self._over or self.draining:
                return
            error = NodeError("the body was cancelled from inside, not by a stop")
        except BaseException as raised:
            # Signals come by the loop's handlers, so even a KeyboardInterrupt here is the body's own.
            error = raised
        finally:
            if os.getpid() != self._process:
                # The body forked, and this is the copy: the run and its connections belong to the other one.
                os._exit(1)
            self.contexts.pop(key, None)
            self.bodies.pop(key, None)
        if self._over:
            if error is not None:
                self.late(NodeFailed(*key, error=failure_of(error)))
            return
        if asked is not None:
            self._suspend(key, asked)
        elif error is None:
            self._record(NodeCompleted(*key))
        else:
            self._fail(key, error)
        self._advance()

    def _suspend(self, key: Key, asked: Asked) -> None:
        suspension = self.state.firings[key].suspensions.get(asked.call)
        if suspension is None:
            event, waits = self._registrar.suspension(key, asked, self.host.now())
            self._record(event)
            self._unsaved.waits += waits
            suspension = self.state.firings[key].suspensions[asked.call]
        self._record(NodeSuspended(*key, token=suspension.tokens[0]))

    def _fail(self, key: Key, error: BaseException) -> None:
        """A failed body is tried again where its node says so and tries are left."""
        failure = failure_of(error)
        cls = self.program.node(key[0]).cls
        attempt = self.state.firings[key].attempts + 1
        if cls is None or cls.retry is None or attempt >= cls.retry.attempts or not getattr(error, "retry", True):
            self._record(NodeFailed(*key, error=failure))
            return
        event, wait = self._registrar.back_off(key, cls.retry, attempt, failure, self.host.now())
        self._record(event)
        self._unsaved.waits.append(wait)

    @property
    def _registrar(self) -> Registrar:
        return Registrar(self.host.secret, self.run)

    async def _run_body(self, key: Key) -> None:
        runtime = self.program.node(key[0])
        if runtime.cls is None:
            raise NodeError(
                f"the code of the node type {runtime.node.type} is gone",
                hint="put its file back and start a new run",
            )
        if runtime.changed is not None:
            raise NodeError(
                f"the node type {runtime.node.type} has changed since this run was started: {runtime.changed}",
                hint="start a new run, or put the old code back before a run goes on",
                retry=False,
            )
        values = self.state.inputs(key)
        misfit = runtime.ports.misfit(values)
        if misfit is not None:
            raise InputError(misfit)
        recorded = self.state.firings[key] if key in self._again else None
        context = RunContext(self, key, runtime, values, recorded)
        self.contexts[key] = context
        await run_body(runtime.cls, context)

    @property
    def _over(self) -> bool:
        """Nothing that a body does now becomes part of the run."""
        return self.stopped or self._ends is not None

    def late(self, event: Event) -> None:
        """Something came after the body or the run had ended."""
        self.host.aftermath(self.owned(), event)

    def remark(self, key: Key, text: str) -> None:
        log.warning(text, run=str(self.run), node=key[0])

    async def ended_by_itself(self) -> None:
        """Waits for the end that this run asked for; the end cancels whoever waits. It is told at once, and looked up
        now and again in case nobody tells."""
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        while not await self.host.look_whether_ended(self.owned()):
            await asyncio.wait([never], timeout=LOOK_WHETHER_ENDED)
        await never

    # --- leaving ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The run ended by another hand, or went elsewhere: nothing of it is written any more, its bodies are told."""
        if self.stopped:
            return
        self.stopped = True
        self._drop()
        self.host.finished(self, None)

    def _drop(self) -> None:
        forgotten, self._unsaved = [self._unsaved, self._in_write], Unsaved()
        for context in list(self.contexts.values()):
            context.cancel()
        for task in list(self.bodies.values()):
            task.cancel()
        for each in forgotten:
            if each is not None:
                each.forgotten()

    def drain(self) -> None:
        """Start nothing more; bodies that run may end and are saved."""
        self.draining = True
        self._unsaved.starting.clear()

    def abandon(self) -> None:
        """After a drain: end what still runs without a word of it in the journal; the next owner runs it again."""
        self.stopped = True
        self._drop()
