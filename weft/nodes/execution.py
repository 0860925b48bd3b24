"""What a running body is given: `ExecutionContext`, as a protocol.

The engine and the author's test rig both stand behind it; what they share is in `context.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from datetime import datetime, timedelta

    import httpx

    from weft.nodes.api import NodeOutput
    from weft.nodes.values import ValueBag
    from weft.nodes.waits import AllOf, First, FirstOf, Form, RunRef, Timer, Webhook, WebhookRequest

R = TypeVar("R")

LogLevel = Literal["debug", "info", "warning", "error"]


class StopSelf(enum.Enum):
    """Whether a stop may reach the run that asks for it.

    `KEEP`: only runs tagged before this one. `INCLUDE`: every run that carries the tag, this one too if it
    does; the call then does not return.
    """

    KEEP = "keep"
    INCLUDE = "include"


class Cancellation(Protocol):
    """Whether the firing was stopped. Once set it stays set."""

    def is_set(self) -> bool:
        """Cheap, and allowed from any thread."""

    async def wait(self) -> None:
        """Return once the firing is stopped; at once if it is."""


class ExecutionContext(Protocol):
    """The firing that a body runs in, and everything it may do there.

    After a stop each awaited call raises `asyncio.CancelledError`, also when the body swallowed the first.
    After a crash or a wait the body runs again from its top: `run`, `await_signal`, `start_run`, `stop_tagged`,
    emissions, closures and log lines are told apart by their position, so calls that were saved are not repeated.
    """

    @property
    def inputs(self) -> ValueBag:
        """The values on the input ports."""

    async def pulse_downstream(self, output: NodeOutput) -> None:
        """Emit on these ports, all or none; each port once a firing.

        Raises EmissionError: an undeclared port, a port emitted or closed before, a value of another type,
        one that cannot be stored, or one over the size limit.
        """

    async def close_port(self, name: str) -> None:
        """Say now that nothing will come on this port. Ports left alone close when the body ends."""

    async def tag_execution(self, tags: Sequence[str]) -> None:
        """Label this run; returns once it is stored. 1 to 64 tags, each 1 to 64 of `A-Z a-z 0-9 _ -`.

        Raises InputError for an illegal tag; then none of them is set.
        """

    async def stop_tagged(self, tags: str | Sequence[str], stop_self: StopSelf = StopSelf.KEEP) -> None:
        """Stop the runs of this project that carry any of these tags; returns once the stop is queued.

        With `StopSelf.INCLUDE` it does not return where it reaches this very run.
        """

    @overload
    async def run(self, name: str, fn: Callable[[], Awaitable[R]]) -> R: ...
    @overload
    async def run(self, name: str, fn: Callable[[], R]) -> R: ...
    async def run(self, name: str, fn: Callable[[], Any]) -> Any:
        """The saved outcome of `fn`, which is called only if none is saved; `None` is an outcome too.

        A failure is saved and raised again as `RunFailed`, the first time and every time. The result must be
        storable JSON. The name is a label; what counts is the position among the calls of the body.
        """

    @overload
    async def await_signal(self, wait: Form, timeout: timedelta | None = None) -> dict[str, Any]: ...
    @overload
    async def await_signal(self, wait: Timer) -> datetime: ...
    @overload
    async def await_signal(self, wait: Webhook, timeout: timedelta | None = None) -> WebhookRequest: ...
    @overload
    async def await_signal(self, wait: RunRef, timeout: timedelta | None = None) -> dict[str, Any]: ...
    @overload
    async def await_signal(self, wait: FirstOf, timeout: timedelta | None = None) -> First: ...
    @overload
    async def await_signal(self, wait: AllOf, timeout: timedelta | None = None) -> list[Any]: ...
    async def await_signal(self, wait: Any, timeout: timedelta | None = None) -> Any:
        """What the wait gives, once it is over. Until then the firing holds nothing: the body leaves here, by an
        exception that it must let pass, and runs again from its top.

        What each wait gives stands with its class. With a `timeout`, counted from the first time that the body
        comes here, it raises WaitTimedOut; a timer is over at its own time. A form that a person skips ends
        the firing as skipped. Raises NodeError once the firing has emitted or closed a port.
        """

    async def start_run(
        self, program: str, inputs: Mapping[str, Mapping[str, Any]] | None = None, *, tags: Sequence[str] = ()
    ) -> RunRef:
        """Start a run of another program, which ends with this one at the latest; returns once it is stored.

        `program` is a path from the project's root; `inputs` is `{node: {port: value}}`, each filling an unwired
        input of a top-level node. Await the RunRef for its end. Raises NodeError where it cannot be started.
        """

    def is_cancelled(self) -> bool:
        """Whether the firing was stopped."""

    def cancellation(self) -> Cancellation:
        """A flag to await, or to poll from a thread."""

    @property
    def http(self) -> httpx.AsyncClient:
        """A client shared by every body of the process. Do not close it."""

    async def subprocess(self, program: str, *args: str, **options: Any) -> Process:
        """Start a process in a group of its own, which is killed whole when the firing ends.

        The options are those of `asyncio.create_subprocess_exec`.
        """

    async def thread(self, fn: Callable[[Cancellation], R]) -> R:
        """The result of `fn(flag)`, called in a thread of its own.

        A stop does not wait for the thread: it is left behind, and should poll the flag and return.
        """

    def log(self, level: LogLevel, text: str) -> Awaitable[None]:
        """Put a line in the run's journal; not doubled on a re-run. Allowed in a thread of `ctx.thread`.

        There is nothing to wait for; `await` is allowed all the same. Dropped after a stop.
        """

    def report_cost(self, service: str, amount: float | None) -> Awaitable[None]:
        """Note what a call cost; `None` says that nobody knows, which is not 0. Otherwise as `log`."""

    def is_output_wired(self, port: str) -> bool:
        """Whether anything hangs on this output."""

    def output_type(self, port: str) -> str:
        """The type of an output as the program resolved it, such as `List[String]`."""

    def declared_outputs(self) -> tuple[str, ...]:
        """The names of the outputs, in source order."""

    @property
    def execution_id(self) -> str:
        """The run's id."""

    @property
    def project_id(self) -> str:
        """The project's id, as in its `weft.toml`."""

    @property
    def node_id(self) -> str:
        """What the program calls this node."""

    @property
    def node_type(self) -> str:
        """The name of the node's type."""

    @property
    def node_label(self) -> str:
        """The node's `_label`, else its id."""

    @property
    def frames(self) -> tuple[int | str, ...]:
        """One entry per enclosing loop (its iteration); empty at the top level."""
