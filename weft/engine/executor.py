"""One run, from claim to end: the fold, the bodies, and what of it is saved.

An `Execution` turns what the fold says is due into events, starts the bodies, and hands events to the journal writer.
It never touches the store by itself. A body with outside effects starts only when its `node_started` is saved; a `pure`
one starts at once. Nothing here decides what is due (`weft.flow`), when it is written (`journal_writer`) or which runs
this process drives (`worker`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from weft.engine.context import RunContext
from weft.engine.journal_writer import JournalWriter
from weft.engine.programs import ReadyProgram
from weft.errors import InputError, NodeError
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
    encode,
)
from weft.flow.state import Kick, RunState, Skip, Start
from weft.log import get_logger
from weft.nodes.context import partly_happened, run_body
from weft.nodes.failures import failure_of
from weft.store.runs.journal import Write
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

    async def tag(self, fence: Fence, tags: Sequence[str], event: str) -> None:
        """Label the run and save the event. `FenceLost` and `RunEnded` where it is no longer ours to label."""

    async def ask_stop(
        self, fence: Fence, node: str, frames: str, call: int, asks: Sequence[tuple[str, bool]]
    ) -> bool:
        """Queue the stops, `(tag, include)` each. Whether one of them reaches this very run."""

    async def look_whether_ended(self, fence: Fence) -> bool:
        """Ask the store whether the run has ended; if it has, the execution is stopped."""

    def shown(self, run: UUID, events: Sequence[Event]) -> None:
        """These events are saved now."""

    def finished(self, execution: Execution, end: End | None) -> None:
        """The run left this process: with its end, or None when it went on elsewhere or was ended by others."""

    def aftermath(self, fence: Fence, event: Event) -> None:
        """Something came after the run had ended."""


class Execution:
    """A run that this process drives. Everything happens on the event loop; no method waits."""

    def __init__(self, host: Host, program: ReadyProgram, project_key: str) -> None:
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
        self._events: list[Event] = []
        self._encoded: list[str] = []
        self._starting: list[Key] = []
        self._flushes: list[asyncio.Future[None]] = []
        self._in_write: tuple[list[Event], list[Key], list[asyncio.Future[None]]] | None = None
        self._ends: OwnEnd | None = None
        self._advance_asked = False
        self._again: set[Key] = set()
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
        encoded, self._encoded = self._encoded, []
        self._in_write = (self._events, self._starting, [])
        self._events, self._starting = [], []
        return encoded

    def born(self, fence: Fence, saved: int) -> None:
        """The start is saved: the run exists, is ours, and goes on."""
        self.fence = fence
        self.next_seq = 1 + saved
        self._release()
        self._advance()

    def replay(self, fence: Fence, events: Sequence[Event], next_seq: int) -> None:
        """Go on with a run that others began: fold its journal, run again what was under way."""
        self.fence = fence
        self.next_seq = next_seq
        for event in events:
            self.state.apply(event)
        for key in list(self.state.running):
            runtime = self.program.node(key[0])
            if runtime.rerun:
                self._record(NodeResumed(*key, token=None))
                self._again.add(key)
                self._starting.append(key)
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
        self._events.append(event)
        self._encoded.append(encode(event))

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
                        self._starting.append((node, frames))
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
        if self._encoded or self._starting or self._flushes:
            self.host.writer.submit(self)

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
        self._starting = []
        for key in list(self.state.running):
            self._record(NodeFailed(*key, error={"message": "the run broke", "type": type(error).__name__}))
        self._end_with(f"a fault of weft's own: {type(error).__name__}: {error}")

    # --- saving -------------------------------------------------------------------------------------------

    def take_write(self) -> Write | None:
        assert self.fence is not None and self._in_write is None
        if self.stopped:
            return None
        if not self._encoded:
            self._in_write = ([], self._starting, self._flushes)
            self._starting, self._flushes = [], []
            self._release()
            return None
        ends = self._ends
        write = Write(
            project=self.fence.project,
            run=self.fence.run,
            lease=self.fence.lease,
            events=self._encoded,
            open_firings=self.state.open_text(),
            ends=ends.status if ends else None,
            error=ends.error if ends else None,
            after=self.next_seq - 1,
        )
        self._in_write = (self._events, self._starting, self._flushes)
        self._events, self._encoded, self._starting, self._flushes = [], [], [], []
        return write

    def saved(self, write: Write, next_seq: int) -> None:
        self.next_seq = next_seq
        if self.stopped:
            self._in_write = None
        elif write.ends is not None:
            self._release()
            self.stopped = True
            self.host.finished(self, End(write.ends, error=write.error))
        else:
            self._release()

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
        self._flushes.append(done)
        self.host.writer.submit(self)
        await done

    def _release(self) -> None:
        """What was under way is saved: show it, start the bodies that waited for it, tell who waited."""
        assert self.fence is not None and self._in_write is not None
        events, starting, flushes = self._in_write
        self._in_write = None
        if events:
            self.host.shown(self.fence.run, events)
        for key in starting:
            if self.draining:
                break
            self._start_body(key)
        for done in flushes:
            if not done.done():
                done.set_result(None)

    # --- bodies -------------------------------------------------------------------------------------------

    def _start_body(self, key: Key) -> None:
        task = asyncio.create_task(self._body(key))
        self.bodies[key] = task

    async def _body(self, key: Key) -> None:
        failure: dict[str, Any] | None = None
        try:
            await self._run_body(key)
        except asyncio.CancelledError:
            if self._over:
                return
            failure = {
                "message": "the body was cancelled from inside, not by a stop",
                "type": "CancelledError",
            }
        except BaseException as error:
            # Signals come by the loop's handlers, so even a KeyboardInterrupt here is the body's own.
            failure = failure_of(error)
        finally:
            if os.getpid() != self._process:
                # The body forked, and this is the copy: the run and its connections belong to the other one.
                os._exit(1)
            self.contexts.pop(key, None)
            self.bodies.pop(key, None)
        event = NodeCompleted(*key) if failure is None else NodeFailed(*key, error=failure)
        if not self._over:
            self._record(event)
            self._advance()
        elif failure is not None:
            self.late(event)

    async def _run_body(self, key: Key) -> None:
        runtime = self.program.node(key[0])
        if runtime.cls is None:
            raise NodeError(
                f"the code of the node type {runtime.node.type} is gone",
                hint="put its file back and start a new run",
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
        self._events, self._encoded, self._starting = [], [], []
        waiting = self._flushes + (self._in_write[2] if self._in_write else [])
        self._flushes = []
        for context in list(self.contexts.values()):
            context.cancel()
        for task in list(self.bodies.values()):
            task.cancel()
        for done in waiting:
            done.cancel()

    def drain(self) -> None:
        """Start nothing more; bodies that run may end and are saved."""
        self.draining = True
        self._starting = []

    def abandon(self) -> None:
        """After a drain: end what still runs without a word of it in the journal; the next owner runs it again."""
        self.stopped = True
        self._drop()
