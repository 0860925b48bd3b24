"""One firing in the rig: its record, and as many lives of its body as crashes and waits make.

What a body may do and what it is refused is `BaseContext`, the same as in a running program. Here is where effects go,
and how a stop or a crash is made to happen.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from weft.errors import InputError, Parked
from weft.flow.events import RunOutput
from weft.flow.firing import CLOSED, Call
from weft.flow.suspension import Suspension
from weft.lang.graph import MISSING
from weft.nodes.api import Node
from weft.nodes.execution import StopSelf
from weft.nodes.firing.body import run_body
from weft.nodes.firing.context import BaseContext
from weft.nodes.firing.failures import failure_of
from weft.nodes.firing.ports import Emission, NodePorts, encoded
from weft.nodes.firing.record import START_RUN, partly_happened
from weft.nodes.firing.suspending import Asked
from weft.nodes.reading.spec import spec_of
from weft.testing.node import compiled
from weft.testing.outcome import Failure, Outcome, StartedRun
from weft.testing.signals import Signals

if TYPE_CHECKING:
    from weft.testing.rig import Rig

GRACE: Final = timedelta(seconds=10)
"""How long a body may go on after it was stopped."""


class _Life(enum.Enum):
    """How one life of a body ended."""

    OVER = "over"
    CRASHED = "crashed"
    PARKED = "parked"


class Record:
    """What of a firing is stored: it outlives a crash."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.outputs: dict[int, RunOutput] = {}
        self.suspensions: dict[int, Suspension] = {}
        self.logged = 0
        self.tags: list[list[str]] = []
        self.stops: dict[int, tuple[list[str], bool]] = {}
        self.effects = 0

    def copy(self) -> Record:
        """As another process would read it."""
        other = Record()
        other.calls, other.outputs, other.logged = list(self.calls), dict(self.outputs), self.logged
        other.suspensions = dict(self.suspensions)
        return other


class Firing:
    """One firing of one node: its record, and as many attempts as there are crashes."""

    def __init__(
        self,
        rig: Rig,
        node: type[Node],
        inputs: dict[str, Any],
        outputs: Mapping[str, Any] | Sequence[str],
        wired: Iterable[str] | None,
        value_limit: int | None,
    ) -> None:
        self.rig = rig
        self.node = node
        self.spec = spec_of(node)
        for name, value in inputs.items():
            if value is not CLOSED:
                inputs[name] = as_json(name, value)
        self.ports = NodePorts.of(compiled(self.spec, inputs, outputs, wired))
        self.values = {
            port.name: value
            for port in self.ports.inputs
            if (value := inputs.get(port.name, port.default)) is not MISSING and value is not CLOSED
        }
        self.limits = {} if value_limit is None else {"value_limit": value_limit}
        self.record = Record()
        self.outcome = Outcome()
        self.attempt: _Attempt | None = None
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.attempt is not None and self.task is not None:
            self.attempt.cancel()
            self.task.cancel()

    async def run(self, crashes: list[int], signals: Signals) -> Outcome:
        abandoned: list[asyncio.Task[None]] = []
        crash = crashes.pop(0) if crashes else None
        try:
            while True:
                life = await self._live(crash, abandoned)
                if life is _Life.OVER:
                    break
                if life is _Life.CRASHED:
                    crash = crashes.pop(0) if crashes else None
                    if not self.spec.rerun:
                        self._fail(partly_happened(self.ports.node.id))
                        break
                elif not self._wake(signals):
                    break
        finally:
            await _end(abandoned)
        return self._filled()

    def _wake(self, signals: Signals) -> bool:
        """Bring the wait that the body is parked on to its end; False where nothing does, or a skip ends the firing."""
        position, suspension = next(reversed(self.record.suspensions.items()))
        signals.end(suspension, self.ports.node.id, position)
        if suspension.outcome is None:
            self.outcome.waiting = [wait for wait in suspension.waits if wait["token"] in suspension.unanswered]
            return False
        self.outcome.skipped = suspension.outcome.kind == "skipped"
        return not self.outcome.skipped

    async def _live(self, crash_after: int | None, abandoned: list[asyncio.Task[None]]) -> _Life:
        outcome, first = self.outcome, self.outcome.attempts == 0
        if self.rig.is_cancelled:
            outcome.cancelled = True
            return _Life.OVER
        outcome.attempts += 1
        attempt = _Attempt(self, None if first else self.record.copy(), crash_after)
        self.attempt = attempt
        self.task = task = asyncio.get_running_loop().create_task(self._body(attempt))
        try:
            await asyncio.wait({task, attempt.crashed}, return_when=asyncio.FIRST_COMPLETED)
            if attempt.is_cancelled() and not task.done():
                await self._wait_for_end(task)
        except asyncio.CancelledError:
            attempt.cancel()
            task.cancel()
            await _end([task])
            raise
        if attempt.is_parked(task):
            return _Life.PARKED
        if crash_after is not None and not attempt.is_cancelled():
            attempt.cancel()
            abandoned.append(task)
            return _Life.CRASHED
        self._judge(attempt, task)
        return _Life.OVER

    async def _wait_for_end(self, task: asyncio.Task[None]) -> None:
        await asyncio.wait({task}, timeout=GRACE.total_seconds())
        if not task.done():
            raise AssertionError(f"the body goes on {GRACE.total_seconds():.0f} seconds after it was stopped")

    async def _body(self, attempt: _Attempt) -> None:
        reason = self.ports.misfit(self.values)
        if reason is not None:
            raise InputError(reason)
        try:
            await run_body(self.node, attempt)
        except Parked:
            assert attempt.asked is not None
            await attempt.register(attempt.asked)
            raise

    def _judge(self, attempt: _Attempt, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if attempt.is_cancelled():
            self.outcome.cancelled = True
            if error is not None and not isinstance(error, asyncio.CancelledError):
                self.outcome.after_stop = _failure(error)
        elif error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.outcome.failed = _failure(error)

    def _filled(self) -> Outcome:
        outcome = self.outcome
        for call in self.record.calls:
            for port, value in call:
                if value is CLOSED:
                    outcome.closed.append(port)
                else:
                    outcome.outputs[port] = value
        outcome.closed += [
            port for port in self.ports.outputs if port not in outcome.outputs and port not in outcome.closed
        ]
        for _, saved in sorted(self.record.outputs.items()):
            if saved.name == START_RUN:
                continue
            outcome.saved.append((saved.name, saved.value if saved.error is None else saved.error))
        return outcome


class _Attempt(BaseContext):
    """The context of one attempt."""

    __slots__ = ("crash_after", "crashed", "firing", "tag_calls")

    def __init__(self, firing: Firing, recorded: Record | None, crash_after: int | None) -> None:
        super().__init__(firing.ports, firing.values, (), recorded, **firing.limits)
        self.firing = firing
        self.crash_after = crash_after
        self.crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tag_calls = 0

    def is_parked(self, task: asyncio.Task[None]) -> bool:
        return task.done() and not task.cancelled() and isinstance(task.exception(), Parked)

    async def register(self, asked: Asked) -> None:
        if asked.registered:
            return
        firing = self.firing
        waits = asked.waits(lambda place: f"{asked.call}.{place}", firing.rig.now)
        firing.record.suspensions[asked.call] = Suspension(waits, asked.mode)
        firing.outcome.waits += waits
        await self._effect()

    @property
    def execution_id(self) -> str:
        return self.firing.rig.execution_id

    @property
    def project_id(self) -> str:
        return self.firing.rig.project_id

    async def _effect(self) -> None:
        """An effect was stored: the moment to crash, if one is due. A process that died runs no `finally`."""
        record = self.firing.record
        record.effects += 1
        if record.effects == self.crash_after:
            self.crashed.set_result(None)
            await asyncio.get_running_loop().create_future()

    async def _emit(self, call: int, emissions: list[Emission]) -> None:
        self.firing.record.calls.append(tuple((each.port, each.value) for each in emissions))
        await self._effect()

    async def _close(self, call: int, port: str) -> None:
        self.firing.record.calls.append(((port, CLOSED),))
        await self._effect()

    async def _record(self, outcome: RunOutput, text: str | None) -> None:
        self.firing.record.outputs[outcome.call] = outcome
        await self._effect()

    async def _tag(self, tags: list[str]) -> None:
        call, self.tag_calls = self.tag_calls, self.tag_calls + 1
        known = self.firing.record.tags
        if known[call : call + 1] == [tags]:
            return
        known.append(tags)
        self.firing.rig.execution_tags.append(tags)
        await self._effect()

    async def _stop(self, position: int, tags: list[str], include: bool) -> None:
        rig, known = self.firing.rig, self.firing.record.stops
        if position not in known:
            known[position] = (tags, include)
            rig.stops += [(tag, StopSelf.INCLUDE if include else StopSelf.KEEP) for tag in tags]
            await self._effect()
        carried = {tag for call in rig.execution_tags for tag in call}
        if include and not carried.isdisjoint(tags):
            rig.cancel()
            await asyncio.get_running_loop().create_future()

    async def _start_run(self, position: int, program: str, inputs: dict[str, dict[str, Any]], tags: list[str]) -> str:
        run = str(uuid4())
        node = self.ports.node.id
        self.firing.record.outputs[position] = RunOutput(node, (), position, START_RUN, {"run": run})
        self.firing.rig.started_runs.append(StartedRun(run, program, inputs, tags))
        await self._effect()
        return run

    def _log(self, level: str, text: str) -> None:
        self.firing.record.logged += 1
        self.firing.outcome.logs.append((level, text))

    def _cost(self, service: str, amount: float | None) -> None:
        self.firing.record.logged += 1
        self.firing.outcome.costs.append((service, amount))

    def _remark(self, text: str) -> None:
        self.firing.outcome.remarks.append(text)

    def _left_behind(self, name: str) -> None:
        self.firing.outcome.left_behind.append(name)


def as_json(name: str, value: Any) -> Any:
    try:
        return encoded(value, limit=2**31)[0]
    except ValueError as error:
        raise ValueError(f"the value for {name} is none that a wire can carry: {error}") from None


def _failure(error: BaseException) -> Failure:
    kept = failure_of(error)
    return Failure(kept["message"], kept["type"], kept.get("hint"), kept.get("traceback"), error)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Let bodies that were left lying come to their end, whatever they raise."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE.total_seconds())
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()
