"""The fold: what a run has become, event by event, and what is due next.

Live execution and replay go through the same `apply`. Live, the engine asks `due`, turns each answer into its
event (kick, start, skip), applies it, runs bodies and applies what they do; after a crash it applies every
stored event and goes on. `due` depends on nothing but what was applied. No clock, no input or output.

An event that does not fit what came before is refused with `EventRefused` (after the run's end: `RunEnded`),
and an emission that a body may not make with `EmissionError`; either leaves the state as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.errors import EmissionError, EventRefused, RunEnded
from weft.flow import events as ev
from weft.flow.events import Ending, Event, Frames, Key
from weft.flow.firing import CLOSED, Failure, Firing, Status, name_of
from weft.flow.outcome import Outcome, outcome_of
from weft.flow.plan import NodePlan, Plan, Wires
from weft.flow.ready import Due, Kick, Skip, Start, decide
from weft.flow.values import fresh, same

__all__ = ["CLOSED", "Due", "Failure", "Firing", "Kick", "Outcome", "Plan", "RunState", "Skip", "Start"]


class RunState:
    """One run of a plan.

    `firings` holds every firing that anything has reached, `running` those that started and have not ended,
    in start order; `failures` are the failed and cancelled firings in the order they ended; `ended` is the
    event that ended the run.
    """

    __slots__ = ("_due", "_open", "_waiting", "ended", "failures", "firings", "plan", "running", "started")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.firings: dict[Key, Firing] = {}
        self.running: dict[Key, Firing] = {}
        self.failures: list[Firing] = []
        self.started = False
        self.ended: Ending | None = None
        self._due: dict[Key, Due] = {}
        self._waiting = 0
        self._open: str | None = "[]"

    # --- questions ----------------------------------------------------------------------------------------

    def due(self) -> list[Due]:
        """What is to be kicked, started or skipped now, in source order. Asking changes nothing."""
        due = self._due
        if len(due) < 2:
            return list(due.values())
        nodes = self.plan.nodes
        return [due[key] for key in sorted(due, key=lambda key: (nodes[key[0]].order, key[1]))]

    def inputs(self, key: Key) -> dict[str, Any]:
        """The input bag of a firing, in the order of its ports, without gates.

        Wired values, else literals, else defaults; an input whose wire closed is absent. Lists and dicts are
        the caller's own.
        """
        firing = self.firings[key]
        values, given = firing.values, firing.plan.given
        return {
            port: fresh(values[port] if port in values else given[port])
            for port in firing.plan.ports
            if port in values or port in given
        }

    def open_text(self) -> str:
        """The running firings as the JSON text of a list of `[node, *frames]`, in start order."""
        if self._open is None:
            self._open = f"[{','.join([ev.firing_text(key) for key in self.running])}]"
        return self._open

    def outcome(self) -> Outcome | None:
        """How the run is to end. None while something runs or is due, before its start and after its end."""
        if self._due or self.running or not self.started or self.ended is not None:
            return None
        waiting = [each for each in self.firings.values() if each.status == "waiting"] if self._waiting else []
        return outcome_of(self.failures, waiting)

    # --- events -------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take one event in. EventRefused, RunEnded or EmissionError where it cannot be, changing nothing."""
        if self.ended is not None:
            raise RunEnded(f"{event.kind} came after {self.ended.kind}: a run that has ended takes no more events")
        _APPLY[type(event)](self, event)

    def _execution_started(self, event: ev.ExecutionStarted) -> None:
        if self.started:
            raise EventRefused("execution_started came twice")
        self.started = True
        self._due.update(self.plan.kicks)

    def _node_kicked(self, event: ev.NodeKicked) -> None:
        key = (event.node, event.frames)
        if type(self._due.get(key)) is not Kick:
            raise _not_due(event, key, "be kicked")
        self._settle(self._firing(self.plan.nodes[event.node], key))

    def _node_started(self, event: ev.NodeStarted) -> None:
        key = (event.node, event.frames)
        if type(self._due.get(key)) is not Start:
            raise _not_due(event, key, "start")
        del self._due[key]
        firing = self.firings[key]
        firing.status = "running"
        self.running[key] = firing
        self._open = None

    def _node_skipped(self, event: ev.NodeSkipped) -> None:
        key = (event.node, event.frames)
        due = self._due.get(key)
        if type(due) is not Skip or due.reason != event.reason:
            raise _not_due(event, key, f"be skipped ({event.reason})")
        del self._due[key]
        firing = self.firings[key]
        firing.reason = event.reason
        self._end(firing, "skipped", due.failure)

    def _node_resumed(self, event: ev.NodeResumed) -> None:
        self._run_of(event)

    def _node_completed(self, event: ev.NodeCompleted) -> None:
        self._stop(self._run_of(event), "completed", None)

    def _node_failed(self, event: ev.NodeFailed) -> None:
        firing = self._run_of(event)
        self.failures.append(firing)
        self._stop(firing, "failed", Failure(event.node, event.frames, event.error))

    def _node_cancelled(self, event: ev.NodeCancelled) -> None:
        firing = self._run_of(event)
        firing.reason = event.reason
        self.failures.append(firing)
        error = {"message": event.reason, "type": "Cancelled"}
        self._stop(firing, "cancelled", Failure(event.node, event.frames, error))

    def _port_emitted(self, event: ev.PortEmitted) -> None:
        firing = self._run_of(event)
        port = event.port
        wires = _wires(firing, port)
        _check_call(firing, event)
        sent = firing.sent
        if port not in sent:
            value = fresh(event.value)
            self._send(firing, port, wires, value)
            sent[port] = value
        elif sent[port] is CLOSED:
            raise EmissionError(f"{name_of(firing.key)} emitted on {port} after closing it")
        elif not same(sent[port], event.value):
            raise EmissionError(f"{name_of(firing.key)} emitted on {port} again, and another value")
        _record(firing, event.call, port, sent[port])

    def _port_closed(self, event: ev.PortClosed) -> None:
        firing = self._run_of(event)
        port = event.port
        wires = _wires(firing, port)
        _check_call(firing, event)
        if port not in firing.sent:
            firing.sent[port] = CLOSED
            self._close(wires, event.frames, None)
        elif firing.sent[port] is not CLOSED:
            raise EmissionError(f"{name_of(firing.key)} closed {port} after emitting on it")
        _record(firing, event.call, port, CLOSED)

    def _run_output(self, event: ev.RunOutput) -> None:
        firing = self._run_of(event)
        if event.call in firing.outputs:
            raise EventRefused(f"{name_of(firing.key)} has the outcome of its call {event.call} on record already")
        firing.outputs[event.call] = event

    def _logged(self, event: ev.LogLine | ev.CostReported) -> None:
        firing = self._run_of(event)
        firing.logged += 1

    def _execution_tagged(self, event: ev.ExecutionTagged) -> None:
        """Tags decide nothing inside the run that carries them."""

    def _execution_ended(self, event: Ending) -> None:
        self.ended = event
        self._due.clear()

    # --- what follows -------------------------------------------------------------------------------------

    def _firing(self, node: NodePlan, key: Key) -> Firing:
        firing = self.firings[key] = Firing(node, key)
        return firing

    def _run_of(self, event: Any) -> Firing:
        key = (event.node, event.frames)
        firing = self.running.get(key)
        if firing is None:
            known = self.firings.get(key)
            state = f"is {known.status}" if known else "was never reached"
            raise EventRefused(f"{event.kind} of {name_of(key)}, which is not running: it {state}")
        return firing

    def _settle(self, firing: Firing) -> None:
        """Nothing more will come to the firing: judge it."""
        node = firing.plan
        closed = firing.closed
        for port, value in node.handed.items():
            if port in closed:
                del closed[port]
                firing.values[port] = value
        verdict = None if node.plain and not closed else decide(node, firing.values, closed)
        name, frames = key = firing.key
        firing.status = "due"
        self._due[key] = Start(name, frames) if verdict is None else Skip(name, frames, *verdict)

    def _stop(self, firing: Firing, status: Status, failure: Failure | None) -> None:
        del self.running[firing.key]
        self._open = None
        self._end(firing, status, failure)

    def _end(self, firing: Firing, status: Status, failure: Failure | None) -> None:
        """End a firing: what it has not sent closes, with the failure where there is one."""
        firing.status = status
        firing.failure = failure
        sent = firing.sent
        frames = firing.key[1]
        for port, wires in firing.plan.wires.items():
            if port not in sent:
                self._close(wires, frames, failure)

    def _send(self, firing: Firing, port: str, wires: Wires, value: Any) -> None:
        frames = firing.key[1]
        for node, target_port in wires:
            if target_port in node.contested:
                rival = self.firings.get((node.id, frames))
                if rival and target_port in rival.values and not same(rival.values[target_port], value):
                    raise EmissionError(
                        f"{name_of(firing.key)} emitted on {port}, "
                        f"but {node.id}.{target_port} already holds another value"
                    )
        for node, target_port in wires:
            target = self._reach(node, frames)
            target.values[target_port] = value
            target.closed.pop(target_port, None)
            self._arrived(target)

    def _close(self, wires: Wires, frames: Frames, failure: Failure | None) -> None:
        for node, port in wires:
            target = self._reach(node, frames)
            if port not in target.values:
                target.closed[port] = target.closed.get(port) or failure
            self._arrived(target)

    def _reach(self, node: NodePlan, frames: Frames) -> Firing:
        key = (node.id, frames)
        firing = self.firings.get(key)
        if firing is None:
            firing = self._firing(node, key)
            self._waiting += 1
        return firing

    def _arrived(self, firing: Firing) -> None:
        firing.awaited -= 1
        if not firing.awaited:
            self._waiting -= 1
            self._settle(firing)


def _not_due(event: Event, key: Key, what: str) -> EventRefused:
    return EventRefused(f"{event.kind}: {name_of(key)} is not due to {what}")


def _wires(firing: Firing, port: str) -> Wires:
    wires = firing.plan.wires.get(port)
    if wires is None:
        outputs = ", ".join(firing.plan.wires) or "none"
        raise EmissionError(f"{firing.node} has no output {port} (it has: {outputs})")
    return wires


def _check_call(firing: Firing, event: ev.PortEmitted | ev.PortClosed) -> None:
    count = len(firing.calls)
    if event.call != count and (event.call != count - 1 or any(port == event.port for port, _ in firing.calls[-1])):
        raise EventRefused(
            f"{event.kind} on {event.port} of {name_of(firing.key)} belongs to call {event.call}, "
            f"but {count} calls are on record"
        )


def _record(firing: Firing, call: int, port: str, value: Any) -> None:
    if call == len(firing.calls):
        firing.calls.append(((port, value),))
    else:
        firing.calls[call] += ((port, value),)


_APPLY: Final[dict[type[Event], Callable[[RunState, Any], None]]] = {
    ev.ExecutionStarted: RunState._execution_started,
    ev.NodeKicked: RunState._node_kicked,
    ev.NodeStarted: RunState._node_started,
    ev.NodeResumed: RunState._node_resumed,
    ev.PortEmitted: RunState._port_emitted,
    ev.PortClosed: RunState._port_closed,
    ev.RunOutput: RunState._run_output,
    ev.NodeCompleted: RunState._node_completed,
    ev.NodeFailed: RunState._node_failed,
    ev.NodeSkipped: RunState._node_skipped,
    ev.NodeCancelled: RunState._node_cancelled,
    ev.ExecutionTagged: RunState._execution_tagged,
    ev.LogLine: RunState._logged,
    ev.CostReported: RunState._logged,
    ev.ExecutionCompleted: RunState._execution_ended,
    ev.ExecutionFailed: RunState._execution_ended,
    ev.ExecutionCancelled: RunState._execution_ended,
}
