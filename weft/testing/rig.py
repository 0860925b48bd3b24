"""`Rig`: runs a node's body in a test, with the real context in front and plain lists behind it.

What a body may do and what it is refused is `BaseContext`, the same as in a running program. Here is only
where effects go, and how a stop or a crash is made to happen.
"""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from weft.errors import InputError
from weft.flow.events import RunOutput
from weft.flow.firing import CLOSED, Call
from weft.flow.suspension import Suspension
from weft.lang.graph import MISSING
from weft.nodes.api import Node, node_class
from weft.nodes.body import run_body
from weft.nodes.context import BaseContext
from weft.nodes.execution import StopSelf
from weft.nodes.failures import failure_of
from weft.nodes.held import close_http_client
from weft.nodes.ports import Emission, NodePorts, encoded
from weft.nodes.record import partly_happened
from weft.nodes.spec import spec_of
from weft.testing.node import compiled
from weft.testing.outcome import Failure, Outcome
from weft.testing.server import Answer, Request, Server

GRACE: Final = timedelta(seconds=10)
"""How long a body may go on after it was stopped."""


class Rig:
    """One run of one node after another. `execution_tags` and `stops` gather over all of them."""

    def __init__(self) -> None:
        self.execution_id = str(uuid4())
        self.project_id = "test"
        self.execution_tags: list[list[str]] = []
        """The tags of each `tag_execution` call."""
        self.stops: list[tuple[str, StopSelf]] = []
        """Each stop that was asked for."""
        self._server: Server | None = None
        self._crashes: list[int] = []
        self._cancelled = False
        self._firing: _Firing | None = None

    async def run(
        self,
        node: type[Node] | Callable[..., Any],
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Mapping[str, Any] | Sequence[str] = (),
        wired: Iterable[str] | None = None,
        value_limit: int | None = None,
    ) -> Outcome:
        """Run a body to its end.

        `inputs` holds the values on the inputs, `weft.testing.CLOSED` for a wire that closed; what is left
        out is not wired and gets its default. `outputs` are those that the program would declare, with
        their types where given; `wired` names the outputs that something hangs on (all). A failure of the
        node is in the outcome. Raises ValueError for inputs that no program could bring about, and
        AssertionError for HTTP requests that nothing was prepared for.
        """
        firing = _Firing(self, node_class(node), dict(inputs or {}), outputs, wired, value_limit)
        self._firing = firing
        try:
            outcome = await firing.run(self._crashes)
        finally:
            self._firing = None
            self._cancelled = False
            await close_http_client()
        self._demand_matched()
        return outcome

    def start(self, node: type[Node] | Callable[..., Any], *args: Any, **options: Any) -> asyncio.Task[Outcome]:
        """As `run`, in a task of its own, so that the test can do something meanwhile: `rig.cancel()`."""
        return asyncio.get_running_loop().create_task(self.run(node, *args, **options))

    def cancel(self) -> None:
        """Stop the body that runs, as `weft stop` would; with none, the next one before it begins."""
        self._cancelled = True
        if self._firing is not None:
            self._firing.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    def crash_after(self, effects: int) -> None:
        """Let the process die in the next run, and the body run again with what was saved until then.

        It dies when the `effects`-th effect of the firing is stored and before the call returns: an
        emission, an early closing, tags, a stop, an outcome of `ctx.run`. A body with fewer dies after its
        last line, before its end is stored. Repeat the call for more than one crash.
        """
        if effects < 1:
            raise ValueError("a crash comes after at least one effect")
        self._crashes.append(effects)

    def respond(
        self,
        method: str,
        path: str,
        *,
        status: int = 200,
        json: Any = MISSING,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Let the rig's server answer requests of this method and path (without query); the whole URL.

        Several answers to one request are given in turn, the last one from then on. A request that nothing
        was prepared for gets status 501 and fails the test.
        """
        body, kind = b"", None
        if json is not MISSING:
            body, kind = json_module.dumps(json, ensure_ascii=False).encode(), "application/json"
        elif text is not None:
            body, kind = text.encode(), "text/plain; charset=utf-8"
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if kind is not None:
            given.setdefault("content-type", kind)
        self._serving().prepare(method, path, Answer(status, given, body))
        return self.url + path

    @property
    def url(self) -> str:
        """Where the rig's server listens, without a path."""
        return self._serving().url

    @property
    def requests(self) -> list[Request]:
        """The requests that came to the rig's server."""
        return self._serving().requests

    def close(self) -> None:
        """End the server. Raises AssertionError for requests that nothing was prepared for."""
        if self._server is not None:
            self._server.close()
            self._demand_matched()

    def _serving(self) -> Server:
        if self._server is None:
            self._server = Server()
        return self._server

    def _demand_matched(self) -> None:
        if self._server is not None and self._server.unmatched:
            names = ", ".join(f"{each.method} {each.path}" for each in self._server.unmatched)
            self._server.unmatched.clear()
            raise AssertionError(f"nothing was prepared for {names}: call rig.respond before the run")


class _Record:
    """What of a firing is stored: it outlives a crash."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.outputs: dict[int, RunOutput] = {}
        self.suspensions: dict[int, Suspension] = {}
        self.logged = 0
        self.tags: list[list[str]] = []
        self.stops: dict[int, tuple[list[str], bool]] = {}
        self.effects = 0

    def copy(self) -> _Record:
        """As another process would read it."""
        other = _Record()
        other.calls, other.outputs, other.logged = list(self.calls), dict(self.outputs), self.logged
        other.suspensions = dict(self.suspensions)
        return other


class _Firing:
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
                inputs[name] = _as_json(name, value)
        self.ports = NodePorts.of(compiled(self.spec, inputs, outputs, wired))
        self.values = {
            port.name: value
            for port in self.ports.inputs
            if (value := inputs.get(port.name, port.default)) is not MISSING and value is not CLOSED
        }
        self.limits = {} if value_limit is None else {"value_limit": value_limit}
        self.record = _Record()
        self.outcome = Outcome()
        self.attempt: _Attempt | None = None
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        if self.attempt is not None and self.task is not None:
            self.attempt.cancel()
            self.task.cancel()

    async def run(self, crashes: list[int]) -> Outcome:
        abandoned: list[asyncio.Task[None]] = []
        try:
            while not await self._live(crashes.pop(0) if crashes else None, abandoned):
                if not self.spec.rerun:
                    self._fail(partly_happened(self.ports.node.id))
                    break
        finally:
            await _end(abandoned)
        return self._filled()

    async def _live(self, crash_after: int | None, abandoned: list[asyncio.Task[None]]) -> bool:
        """One attempt; False where it crashed."""
        outcome, first = self.outcome, self.outcome.attempts == 0
        if self.rig.is_cancelled:
            outcome.cancelled = True
            return True
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
        if crash_after is not None and not attempt.is_cancelled():
            attempt.cancel()
            abandoned.append(task)
            return False
        self._judge(attempt, task)
        return True

    async def _wait_for_end(self, task: asyncio.Task[None]) -> None:
        await asyncio.wait({task}, timeout=GRACE.total_seconds())
        if not task.done():
            raise AssertionError(f"the body goes on {GRACE.total_seconds():.0f} seconds after it was stopped")

    async def _body(self, attempt: _Attempt) -> None:
        reason = self.ports.misfit(self.values)
        if reason is not None:
            raise InputError(reason)
        await run_body(self.node, attempt)

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
            outcome.saved.append((saved.name, saved.value if saved.error is None else saved.error))
        return outcome


class _Attempt(BaseContext):
    """The context of one attempt."""

    __slots__ = ("crash_after", "crashed", "firing", "tag_calls")

    def __init__(self, firing: _Firing, recorded: _Record | None, crash_after: int | None) -> None:
        super().__init__(firing.ports, firing.values, (), recorded, **firing.limits)
        self.firing = firing
        self.crash_after = crash_after
        self.crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tag_calls = 0

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


def _as_json(name: str, value: Any) -> Any:
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
