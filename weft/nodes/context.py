"""`BaseContext`: everything of an ExecutionContext that does not depend on where effects go.

The engine and the author's rig subclass it and supply these, called only when the effect is new and allowed:

- `execution_id`, `project_id`: properties;
- `_emit(call, emissions)`, `_close(call, port)`: a new emission or early closing, `call` counted from 0 over
  both; may return an awaitable to wait for;
- `_record(outcome, text)`: keep an outcome of `run`; returns once it is kept;
- `_tag(tags)`, `_stop(position, tags, include)`: return once it is stored;
- `_log(level, text)`, `_cost(service, amount)`: a line;
- `_remark(text)`: something for whoever runs this about a body that ran again; takes no position;
- `_left_behind(name)`: a thread goes on after the firing.

The host calls `run_body` and, for a stop, `cancel()` before it cancels the body's task. Three counters give
positions: `run` and `stop_tagged` calls, emitting calls, lines. A body that runs again after a crash is given
what was recorded, and repeats none of it.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError, get_running_loop
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from weft.errors import DivergedAfterCrash, InputError, InvalidTag, NodeError, RunFailed
from weft.flow.events import Error, Frames, RunOutput
from weft.flow.firing import CLOSED, Call
from weft.flow.values import fresh, same
from weft.lang.graph import MISSING
from weft.nodes.api import Node, NodeOutput
from weft.nodes.execution import ExecutionContext, StopSelf
from weft.nodes.failures import failure_of, storable_text
from weft.nodes.held import Flag, Held, http_client
from weft.nodes.ports import VALUE_LIMIT, Emission, NodePorts, encoded
from weft.nodes.values import ValueBag
from weft.rules import tags as tag_rules

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    import httpx

R = TypeVar("R")

LEVELS: Final = ("debug", "info", "warning", "error")
LONGEST_LINE: Final = 64_000
"""Of a log line, in characters."""


class Recorded(Protocol):
    """What is on record of a firing that a crash caught; a flow `Firing` is one."""

    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def outputs(self) -> Mapping[int, RunOutput]: ...
    @property
    def logged(self) -> int: ...


class _Done:
    """Nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE: Final = _Done()
_in_run: ContextVar[object] = ContextVar("_in_run", default=None)
"""The context whose `run` is calling its function right now."""


class BaseContext:
    """One firing's context. Made for every firing, so it starts with next to nothing."""

    __slots__ = (
        "_calls",
        "_flag",
        "_held",
        "_inputs",
        "_limit",
        "_lines",
        "_positions",
        "_recorded",
        "_refusal",
        "_stopped",
        "_touched",
        "_values",
        "frames",
        "ports",
    )

    def __init__(
        self,
        ports: NodePorts,
        values: Mapping[str, Any],
        frames: Frames = (),
        recorded: Recorded | None = None,
        value_limit: int = VALUE_LIMIT,
    ) -> None:
        self.ports = ports
        self.frames = frames
        self._values = values
        self._recorded = recorded
        self._limit = value_limit
        self._inputs: ValueBag | None = None
        self._touched: set[str] | None = None
        self._calls = 0
        self._positions = 0
        self._lines = 0
        self._stopped = False
        self._refusal: Callable[[], BaseException] | None = None
        self._flag: Flag | None = None
        self._held: Held | None = None

    # --- what a host supplies -----------------------------------------------------------------------------

    if TYPE_CHECKING:

        @property
        def execution_id(self) -> str: ...
        @property
        def project_id(self) -> str: ...
        def _emit(self, call: int, emissions: list[Emission]) -> Awaitable[None] | None: ...
        def _close(self, call: int, port: str) -> Awaitable[None] | None: ...
        async def _record(self, outcome: RunOutput, text: str | None) -> None: ...
        async def _tag(self, tags: list[str]) -> None: ...
        async def _stop(self, position: int, tags: list[str], include: bool) -> None: ...
        def _log(self, level: str, text: str) -> None: ...
        def _cost(self, service: str, amount: float | None) -> None: ...
        def _remark(self, text: str) -> None: ...
        def _left_behind(self, name: str) -> None: ...

    # --- what a host calls --------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The firing was stopped: every call from now on raises CancelledError. Safe to repeat."""
        self._stopped = True
        self._refusal = CancelledError
        if self._flag is not None:
            self._flag.set()
        if self._held is not None:
            self._held.tell()

    @property
    def holds(self) -> bool:
        """Whether there are processes or threads for `release` to end."""
        return self._held is not None

    async def release(self) -> None:
        """Kill the processes and leave the threads, once the body has ended."""
        held, self._held = self._held, None
        if held is not None:
            for name in await held.let_go():
                self._left_behind(name)

    def finish(self) -> None:
        """The body has returned. Raises DivergedAfterCrash where it did something else than before a crash."""
        if self._refusal is not None:
            raise self._refusal()
        recorded = self._recorded
        if recorded is not None and self._calls < len(recorded.calls):
            missing = _spelled(recorded.calls[self._calls])
            raise self._diverge(
                f"the body of `{self.node_id}` ended after {_times(self._calls)} that emitted or closed, and before "
                f"the crash it had then {missing}"
            )

    def end(self) -> None:
        """The body is over: whatever is left of it can do nothing any more."""
        if self._refusal is None:
            self._refusal = self._ended

    # --- who am I -----------------------------------------------------------------------------------------

    @property
    def node_id(self) -> str:
        return self.ports.node.id

    @property
    def node_type(self) -> str:
        return self.ports.node.type

    @property
    def node_label(self) -> str:
        node = self.ports.node
        return node.id if node.label is None else node.label

    @property
    def inputs(self) -> ValueBag:
        bag = self._inputs
        if bag is None:
            bag = self._inputs = ValueBag(self._values, self.ports.node.id, self.ports.inputs)
        return bag

    def is_output_wired(self, port: str) -> bool:
        return self.ports.output(port).wired

    def output_type(self, port: str) -> str:
        return self.ports.output(port).type

    def declared_outputs(self) -> tuple[str, ...]:
        return tuple(self.ports.outputs)

    # --- emitting -----------------------------------------------------------------------------------------

    async def pulse_downstream(self, output: NodeOutput) -> None:
        self._demand_live()
        if not isinstance(output, NodeOutput):
            raise NodeError(f"pulse_downstream takes a NodeOutput, not {output!r}")
        touched = self._touched
        if touched is None:
            touched = self._touched = set()
        emissions = self.ports.checked_output(output.values, touched, self._limit)
        if not emissions:
            return
        call = self._calls
        recorded = self._recorded
        if recorded is not None and call < len(recorded.calls):
            self._repeat(recorded.calls[call], {each.port: each.value for each in emissions})
        self._calls = call + 1
        for each in emissions:
            touched.add(each.port)
        if recorded is None or call >= len(recorded.calls):
            waiting = self._emit(call, emissions)
            if waiting is not None:
                await waiting

    async def close_port(self, name: str) -> None:
        self._demand_live()
        self.ports.output(name)
        touched = self._touched
        if touched is None:
            touched = self._touched = set()
        if name in touched:
            raise self.ports.touched_twice(name)
        call = self._calls
        recorded = self._recorded
        repeated = recorded is not None and call < len(recorded.calls)
        if recorded is not None and repeated:
            self._repeat(recorded.calls[call], {name: CLOSED})
        self._calls = call + 1
        touched.add(name)
        if not repeated:
            waiting = self._close(call, name)
            if waiting is not None:
                await waiting

    def _repeat(self, before: Call, now: dict[str, Any]) -> None:
        """A call that is on record: it must name the same ports. The recorded values stand."""
        recorded = dict(before)
        if recorded.keys() != now.keys() or any(
            (recorded[port] is CLOSED) is not (now[port] is CLOSED) for port in now
        ):
            raise self._diverge(
                f"`{self.node_id}` has {_spelled(tuple(now.items()))}, and before the crash it had "
                f"{_spelled(before)} in that place"
            )
        for port, value in now.items():
            if value is not CLOSED and not same(recorded[port], value):
                self._remark(f"`{self.node_id}.{port}` came out differently after a crash; the value of before stands")

    def _diverge(self, message: str) -> DivergedAfterCrash:
        """The error for a body that does something else than before; it sticks, caught or not."""

        def refusal() -> DivergedAfterCrash:
            return DivergedAfterCrash(message, hint="take what may come out differently from `ctx.run`")

        self._refusal = refusal
        return refusal()

    # --- steering -----------------------------------------------------------------------------------------

    async def tag_execution(self, tags: Sequence[str]) -> None:
        self._demand_live()
        await self._tag(_checked_tags(tags))

    async def stop_tagged(self, tags: str | Sequence[str], stop_self: StopSelf = StopSelf.KEEP) -> None:
        self._demand_live()
        names = _checked_tags([tags] if isinstance(tags, str) else tags)
        if not isinstance(stop_self, StopSelf):
            raise InputError(f"stop_tagged takes StopSelf.KEEP or StopSelf.INCLUDE, not {stop_self!r}")
        position = self._position()
        saved = None if self._recorded is None else self._recorded.outputs.get(position)
        if saved is not None:
            raise self._diverge(
                f"`{self.node_id}` calls stop_tagged, and before the crash it had called run({saved.name!r}) "
                "in that place"
            )
        await self._stop(position, names, stop_self is StopSelf.INCLUDE)

    # --- saved outcomes -----------------------------------------------------------------------------------

    async def run(self, name: str, fn: Callable[[], Any]) -> Any:
        self._demand_live()
        position = self._position()
        saved = None if self._recorded is None else self._recorded.outputs.get(position)
        if saved is not None:
            if saved.error is not None:
                raise _run_failed(saved.error)
            return fresh(saved.value)
        value, text, failure, cause = await self._outcome(name, fn)
        self._demand_live()
        await self._record(RunOutput(self.node_id, self.frames, position, name, value, failure), text)
        if failure is not None:
            raise _run_failed(failure) from cause
        return value

    async def _outcome(
        self, name: str, fn: Callable[[], Any]
    ) -> tuple[Any, str | None, Error | None, Exception | None]:
        """The value with its text, or the failure with the exception it came from."""
        token = _in_run.set(self)
        try:
            result = fn()
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            return MISSING, None, failure_of(error), error
        finally:
            _in_run.reset(token)
        try:
            return (*encoded(result, self._limit), None, None)
        except ValueError as error:
            problem = NodeError(f"the result of run({name!r}) in `{self.node_id}` cannot be stored: {error}")
            return MISSING, None, failure_of(problem), problem

    def _position(self) -> int:
        position = self._positions
        self._positions = position + 1
        return position

    # --- stopping -----------------------------------------------------------------------------------------

    def is_cancelled(self) -> bool:
        return self._stopped

    def cancellation(self) -> Flag:
        flag = self._flag
        if flag is None:
            flag = self._flag = Flag()
            if self._stopped:
                flag.set()
        return flag

    def _demand_live(self) -> None:
        if self._refusal is not None:
            raise self._refusal()
        if _in_run.get() is self:
            raise NodeError(
                f"the function that `{self.node_id}` gives to ctx.run uses the context",
                hint="a saved outcome is not computed again, so make this call outside of ctx.run",
            )

    def _ended(self) -> NodeError:
        return NodeError(f"the firing of `{self.node_id}` has ended, and something of it still uses the context")

    # --- outside the loop ---------------------------------------------------------------------------------

    @property
    def http(self) -> httpx.AsyncClient:
        return http_client()

    async def subprocess(self, program: str, *args: str, **options: Any) -> Process:
        self._demand_usable()
        return await self._holding().start(program, *args, **options)

    async def thread(self, fn: Callable[[Flag], R]) -> R:
        self._demand_usable()
        return await self._holding().call(fn)

    def _demand_usable(self) -> None:
        """As `_demand_live`, but allowed in the function of `run`: nothing is recorded."""
        if self._refusal is not None:
            raise self._refusal()

    def _holding(self) -> Held:
        held = self._held
        if held is None:
            held = self._held = Held()
        return held

    # --- lines --------------------------------------------------------------------------------------------

    def log(self, level: str, text: str) -> Awaitable[None]:
        if level not in LEVELS:
            raise NodeError(f"there is no log level {level!r}", hint=f"the levels are {', '.join(LEVELS)}")
        return self._line(self._log, level, storable_text(str(text), LONGEST_LINE))

    def report_cost(self, service: str, amount: float | None) -> Awaitable[None]:
        if amount is not None and (
            isinstance(amount, bool) or not isinstance(amount, int | float) or not isfinite(amount)
        ):
            raise NodeError(f"a cost is a number, or None where nobody knows it, not {amount!r}")
        return self._line(self._cost, storable_text(str(service), LONGEST_LINE), amount)

    def _line(self, write: Callable[..., None], *what: Any) -> Awaitable[None]:
        if self._held is not None and not _on_loop():
            self._held.loop.call_soon_threadsafe(self._write_line, write, *what)
        else:
            self._write_line(write, *what)
        return _DONE

    def _write_line(self, write: Callable[..., None], *what: Any) -> None:
        """Lines that come after a stop are dropped, not refused: they are written while cleaning up."""
        if self._refusal is not None:
            return
        line = self._lines
        self._lines = line + 1
        if self._recorded is None or line >= self._recorded.logged:
            write(*what)


async def run_body(node: type[Node], context: BaseContext) -> None:
    """Run a body to its end and let go of what it held. Raises what the body raised.

    A body that returns after a stop raises CancelledError: what it gave is dropped. One that raises
    something else after a stop raises that; `context.is_cancelled()` tells the host.
    """
    body: Callable[[ExecutionContext], Awaitable[object]] = node().run
    try:
        result = await body(context)
        if context.is_cancelled():
            raise CancelledError
        if result is not None:
            raise NodeError(
                f"the body of `{context.node_id}` returned {type(result).__name__}, which nobody would see",
                hint="emit it: `await ctx.pulse_downstream(NodeOutput().set(port, value))`",
            )
        context.finish()
    finally:
        context.end()
        if context.holds:
            await context.release()


def partly_happened(node_id: str) -> NodeError:
    """The failure of a firing that a crash caught and that may not run a second time."""
    return NodeError(
        f"`{node_id}` was caught by a crash and may have partly happened; its type does not let it run again",
        hint="look whether its effects are there, and start the run anew",
    )


def _run_failed(failure: Error) -> RunFailed:
    return RunFailed(
        failure["message"],
        type_name=failure["type"],
        traceback=failure.get("traceback"),
        hint=failure.get("hint"),
    )


def _checked_tags(tags: Sequence[str]) -> list[str]:
    try:
        return list(dict.fromkeys(tag_rules.check(tags)))
    except InvalidTag as error:
        raise InputError(error.message, hint=error.hint) from None


def _on_loop() -> bool:
    try:
        get_running_loop()
    except RuntimeError:
        return False
    return True


def _times(calls: int) -> str:
    return "no call" if calls == 0 else "one call" if calls == 1 else f"{calls} calls"


def _spelled(call: Call) -> str:
    """As in: emitted `a` and closed `b`."""
    emitted = ", ".join(f"`{port}`" for port, value in call if value is not CLOSED)
    closed = ", ".join(f"`{port}`" for port, value in call if value is CLOSED)
    return " and ".join([f"emitted {emitted}"] * bool(emitted) + [f"closed {closed}"] * bool(closed))
