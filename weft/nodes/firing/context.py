"""`BaseContext`: everything of an ExecutionContext that does not depend on where effects go.

The engine and the author's rig subclass it and supply these, called only when the effect is new and allowed:

- `execution_id`, `project_id`: properties;
- `_emit(call, emissions)`, `_close(call, port)`: a new emission or early closing, `call` counted from 0 over
  both; may return an awaitable to wait for;
- `_record(outcome, text)`: keep an outcome of `run`; returns once it is kept;
- `_tag(tags)`, `_stop(position, tags, include)`: return once it is stored;
- `_start_run(position, program, inputs, tags)`: the id of the child run, started and kept as the outcome
  `start_run` of that position in one step; raises NodeError for what cannot be started;
- `_log(level, text)`, `_cost(service, amount)`: a line;
- `_remark(text)`: something for whoever runs this about a body that ran again; takes no position;
- `_left_behind(name)`: a thread goes on after the firing.

The host calls `run_body` and, for a stop, `cancel()` before it cancels the body's task. A body that has to wait
leaves by `Parked`, and `asked` then says what to register. Three counters give positions: one for `run`,
`start_run`, `stop_tagged` and `await_signal`, one for emitting calls, one for lines. A body that runs again, after
a crash or a wait, is given what was recorded, and repeats none of it.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError, get_running_loop
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weft.errors import InputError, InvalidTag, NodeError, Parked, RunFailed
from weft.flow.events import Error, Frames, RunOutput
from weft.flow.firing import CLOSED
from weft.flow.values import fresh
from weft.lang.graph import MISSING
from weft.nodes.api import NodeOutput
from weft.nodes.execution import StopSelf
from weft.nodes.firing.failures import failure_of, storable_text
from weft.nodes.firing.held import Flag, Held, http_client
from weft.nodes.firing.ports import VALUE_LIMIT, Emission, NodePorts, encoded
from weft.nodes.firing.record import START_RUN, Recorded, Repeated
from weft.nodes.firing.suspending import Asked, Awaited, described
from weft.nodes.values import ValueBag
from weft.nodes.waits import RunRef
from weft.rules import tags as tag_rules

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from datetime import timedelta

    import httpx

R = TypeVar("R")

LEVELS: Final = ("debug", "info", "warning", "error")
LONGEST_LINE: Final = 64_000
"""Of a log line, in characters."""


class _Done:
    """Nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE: Final = _Done()
_in_run: ContextVar[object] = ContextVar("_in_run", default=None)
"""The context whose `run` is calling its function right now."""


class BaseContext(Repeated):
    """One firing's context. Made for every firing, so it starts with next to nothing."""

    __slots__ = (
        "_asked",
        "_flag",
        "_held",
        "_inputs",
        "_limit",
        "_lines",
        "_stopped",
        "_touched",
        "_values",
        "frames",
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
        self._recorded = recorded
        self._calls = 0
        self._positions = 0
        self._refusal = None
        self._values = values
        self._limit = value_limit
        self._inputs: ValueBag | None = None
        self._touched: set[str] | None = None
        self._lines = 0
        self._stopped = False
        self._asked: Asked | None = None
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
        async def _start_run(
            self, position: int, program: str, inputs: dict[str, dict[str, Any]], tags: list[str]
        ) -> str: ...
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

    @property
    def asked(self) -> Asked | None:
        """What the body waits for, once it has been told to leave by `Parked`."""
        return self._asked

    def finish(self) -> None:
        """The body has returned. Raises NodeError where it swallowed the signal to leave, and DivergedAfterCrash
        where it did something else than the time before."""
        if self._asked is not None and not self._stopped:
            raise self._swallowed("went on to its end")
        if self._refusal is not None:
            raise self._refusal()
        self._demand_all_repeated()

    def leave(self, error: BaseException) -> None:
        """The body has raised. Raises `Parked` where that is what it came to, and NodeError where it answered the
        signal to leave with another error."""
        if self._stopped:
            if isinstance(error, Parked):
                raise CancelledError from None
        elif self._asked is None:
            if isinstance(error, Parked):
                raise NodeError(f"the body of `{self.node_id}` raises Parked without a wait") from error
        elif isinstance(error, BaseExceptionGroup):
            # A task group in the body wraps it.
            if error.split(Parked)[1] is None:
                raise Parked from None
            raise self._swallowed(f"raised {type(error).__name__}") from error
        elif isinstance(error, Exception):
            raise self._swallowed(f"raised {type(error).__name__}: {error}") from error

    def _swallowed(self, then: str) -> NodeError:
        return NodeError(
            f"the body of `{self.node_id}` caught the signal by which await_signal leaves it, and {then}; "
            "nothing was registered to wait for",
            hint="let `weft.Parked` pass: catch `Exception`, not `BaseException`, and do not return from `finally`",
            retry=False,
        )

    def end(self) -> None:
        """The body is over: whatever is left of it can do nothing any more."""
        if self._refusal is None:
            self._refusal = self._ended

    # --- who am I -----------------------------------------------------------------------------------------

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

    # --- steering -----------------------------------------------------------------------------------------

    async def tag_execution(self, tags: Sequence[str]) -> None:
        self._demand_live()
        await self._tag(_checked_tags(tags))

    async def stop_tagged(self, tags: str | Sequence[str], stop_self: StopSelf = StopSelf.KEEP) -> None:
        self._demand_live()
        names = _checked_tags([tags] if isinstance(tags, str) else tags)
        if not isinstance(stop_self, StopSelf):
            raise InputError(f"stop_tagged takes StopSelf.KEEP or StopSelf.INCLUDE, not {stop_self!r}")
        await self._stop(self._position("stop_tagged"), names, stop_self is StopSelf.INCLUDE)

    async def start_run(
        self, program: str, inputs: Mapping[str, Mapping[str, Any]] | None = None, *, tags: Sequence[str] = ()
    ) -> RunRef:
        self._demand_live()
        if not isinstance(program, str) or not program:
            raise InputError(f"start_run takes the path of a program, not {program!r}")
        given = self._inputs_of_run({} if inputs is None else inputs)
        names = _checked_tags(tags) if tags else []
        position = self._position(START_RUN)
        saved = self._saved(position)
        if saved is None:
            return RunRef(await self._start_run(position, program, given, names))
        if saved.error is not None:
            raise _run_failed(saved.error)
        return RunRef(saved.value["run"])

    def _inputs_of_run(self, inputs: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(inputs, Mapping) or not all(isinstance(ports, Mapping) for ports in inputs.values()):
            raise InputError(f"the inputs of the run that `{self.node_id}` starts are `{{node: {{port: value}}}}`")
        try:
            given: dict[str, dict[str, Any]]
            given = encoded({node: dict(ports) for node, ports in inputs.items()}, self._limit)[0]
        except ValueError as error:
            raise InputError(f"the inputs of the run that `{self.node_id}` starts cannot be stored: {error}") from None
        return given

    # --- saved outcomes -----------------------------------------------------------------------------------

    async def run(self, name: str, fn: Callable[[], Any]) -> Any:
        self._demand_live()
        if name == START_RUN:
            raise NodeError(f"a saved outcome cannot be called {name}: that is the name of what ctx.start_run saves")
        position = self._position("run", f"run({name!r})")
        saved = self._saved(position)
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

    # --- waiting ------------------------------------------------------------------------------------------

    async def await_signal(self, wait: Any, timeout: timedelta | None = None) -> Any:
        self._demand_live()
        awaited = Awaited(wait, timeout)
        if self._calls:
            raise self._too_late()
        position = self._position("await_signal", f"await_signal for {awaited}")
        suspended = None if self._recorded is None else self._recorded.suspensions.get(position)
        if suspended is not None:
            if not awaited.like(suspended):
                raise self._other_call(f"await_signal for {awaited}", f"await_signal for {described(suspended)}")
            if suspended.outcome is not None:
                return awaited.outcome(suspended.outcome)
        elif self._recorded is not None and self._recorded.calls:
            raise self._too_late()
        self._asked = awaited.ask(position, self._limit, registered=suspended is not None)
        self._refusal = Parked
        raise Parked

    def _too_late(self) -> NodeError:
        return NodeError(
            f"`{self.node_id}` has emitted or closed a port, and cannot wait any more",
            hint="wait first: when the wait is over the body runs again from its top, and what was emitted stands",
        )

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
