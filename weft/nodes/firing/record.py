"""What is on record of a firing whose body runs again, and how the body is held to it, position by position.

Not here: the calls themselves (`context.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from weft.errors import DivergedAfterCrash, NodeError
from weft.flow.events import RunOutput
from weft.flow.firing import CLOSED, Call
from weft.flow.suspension import Suspension
from weft.flow.values import same
from weft.nodes.firing.ports import NodePorts
from weft.nodes.firing.suspending import described

START_RUN: Final = "start_run"
"""The name under which the outcome of `ctx.start_run` is recorded."""


class Recorded(Protocol):
    """A flow `Firing` is one."""

    @property
    def calls(self) -> Sequence[Call]: ...
    @property
    def outputs(self) -> Mapping[int, RunOutput]: ...
    @property
    def suspensions(self) -> Mapping[int, Suspension]: ...
    @property
    def logged(self) -> int: ...


class Repeated:
    """The part of a context that compares what a body does with what it did the time before.

    `_positions` counts `run`, `start_run`, `stop_tagged` and `await_signal` calls, `_calls` those that emit or
    close. `_refusal` makes what every further call raises.
    """

    __slots__ = ("_calls", "_positions", "_recorded", "_refusal", "ports")

    ports: NodePorts
    _recorded: Recorded | None
    _calls: int
    _positions: int
    _refusal: Callable[[], BaseException] | None

    if TYPE_CHECKING:

        def _remark(self, text: str) -> None: ...

    @property
    def node_id(self) -> str:
        return self.ports.node.id

    # --- emitting calls -----------------------------------------------------------------------------------

    def _repeat(self, before: Call, now: dict[str, Any]) -> None:
        """A call that is on record: it must name the same ports. The recorded values stand."""
        recorded = dict(before)
        if recorded.keys() != now.keys() or any(
            (recorded[port] is CLOSED) is not (now[port] is CLOSED) for port in now
        ):
            raise self._diverge(
                f"`{self.node_id}` has {_spelled(tuple(now.items()))}, and the time before it had "
                f"{_spelled(before)} in that place"
            )
        for port, value in now.items():
            if value is not CLOSED and not same(recorded[port], value):
                self._remark(f"`{self.node_id}.{port}` came out differently than before; the first value stands")

    def _demand_all_repeated(self) -> None:
        """The body has ended. Raises DivergedAfterCrash where it has not repeated every recorded call."""
        recorded = self._recorded
        if recorded is not None and self._calls < len(recorded.calls):
            raise self._diverge(
                f"the body of `{self.node_id}` ended after {_times(self._calls)} that emitted or closed, and the time "
                f"before it had then {_spelled(recorded.calls[self._calls])}"
            )

    def _diverge(self, message: str) -> DivergedAfterCrash:
        """The error for a body that does something else than before; it sticks, caught or not."""

        def refusal() -> DivergedAfterCrash:
            return DivergedAfterCrash(message, hint="take what may come out differently from `ctx.run`")

        self._refusal = refusal
        return refusal()

    # --- the other positions ------------------------------------------------------------------------------

    def _position(self, kind: str, call: str | None = None) -> int:
        """The next position, taken for a call of this kind. Raises DivergedAfterCrash: another kind is on record."""
        position = self._positions
        self._positions = position + 1
        before = self._before(position)
        if before is not None and before[0] != kind:
            raise self._other_call(call or kind, before[1])
        return position

    def _before(self, position: int) -> tuple[str, str] | None:
        """What is on record at a position: the kind of the call, and the call as a person reads it."""
        recorded = self._recorded
        if recorded is None:
            return None
        outcome = recorded.outputs.get(position)
        if outcome is not None:
            return (START_RUN, START_RUN) if outcome.name == START_RUN else ("run", f"run({outcome.name!r})")
        suspended = recorded.suspensions.get(position)
        return None if suspended is None else ("await_signal", f"await_signal for {described(suspended)}")

    def _other_call(self, call: str, before: str) -> DivergedAfterCrash:
        return self._diverge(f"`{self.node_id}` calls {call}, and the time before it had called {before} in that place")

    def _saved(self, position: int) -> RunOutput | None:
        return None if self._recorded is None else self._recorded.outputs.get(position)


def partly_happened(node_id: str) -> NodeError:
    """The failure of a firing that a crash caught and that may not run a second time."""
    return NodeError(
        f"`{node_id}` was caught by a crash and may have partly happened; its type does not let it run again",
        hint="look whether its effects are there, and start the run anew",
        retry=False,
    )


def _times(calls: int) -> str:
    return "no call" if calls == 0 else "one call" if calls == 1 else f"{calls} calls"


def _spelled(call: Call) -> str:
    """As in: emitted `a` and closed `b`."""
    emitted = ", ".join(f"`{port}`" for port, value in call if value is not CLOSED)
    closed = ", ".join(f"`{port}`" for port, value in call if value is CLOSED)
    return " and ".join([f"emitted {emitted}"] * bool(emitted) + [f"closed {closed}"] * bool(closed))
