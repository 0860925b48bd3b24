"""The fold: what a run has become, event by event, and what is due next.

Live execution and replay go through the same `apply`. Live, the engine asks `due`, turns each answer into its
event (kick, start, skip, resume), applies it, runs bodies and applies what they do; after a crash it applies every
stored event and goes on. `due` depends on nothing but what was applied. No clock, no input or output.

The ends of waits come from outside at any moment. The engine may learn of one later than the store did, after
events of its own: where a wait's end stands among the events of a firing that is not through with it changes
nothing.

An event that does not fit what came before is refused with `EventRefused` (after the run's end: `RunEnded`),
and an emission that a body may not make with `EmissionError`; either leaves the state as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.errors import EmissionError, EventRefused, RunEnded
from weft.flow import events as ev
from weft.flow.board import Board
from weft.flow.events import Ending, Event, Key
from weft.flow.firing import CLOSED, Failure, Firing, name_of
from weft.flow.outcome import Outcome
from weft.flow.plan import Plan
from weft.flow.ready import Due, Kick, Resume, Skip, Start
from weft.flow.record import (
    catch_up,
    check_call,
    check_position,
    check_silent,
    forget_last_failures,
    record_call,
    wires_of,
)
from weft.flow.snapshot import read_into, written
from weft.flow.suspension import Suspension, WokenBy
from weft.flow.values import fresh, same

__all__ = [
    "CLOSED",
    "Due",
    "Failure",
    "Firing",
    "Kick",
    "Outcome",
    "Plan",
    "Resume",
    "RunState",
    "Skip",
    "Start",
    "Suspension",
    "WokenBy",
]

_OPEN: Final = ("running", "parked")


class RunState(Board):
    """One run of a plan, in the face of its events."""

    __slots__ = ()

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values, shared with the state: make a text of it before the next event."""
        return written(self)

    @classmethod
    def restore(cls, plan: Plan, data: dict[str, Any]) -> RunState:
        """The state that a snapshot tells of, taking over its values.

        The plan must be of the same program and selection. ValueError for a snapshot of another version: the
        journal tells the same from its start.
        """
        state = cls(plan)
        read_into(state, data)
        return state

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
        if firing.status == "parked":
            self._unpark(firing)
        self._end(firing, "skipped", due.failure)

    def _node_resumed(self, event: ev.NodeResumed) -> None:
        if event.token is None:
            self._run_of(event)
            return
        key = (event.node, event.frames)
        due = self._due.get(key)
        if type(due) is not Resume or due.token != event.token:
            raise _not_due(event, key, "resume by that token")
        firing = self.parked[key]
        self._unpark(firing)
        firing.status = "running"
        self.running[key] = firing

    def _suspension_registered(self, event: ev.SuspensionRegistered) -> None:
        firing = self._run_of(event)
        check_silent(firing, event)
        check_position(firing, event.call)
        if not event.waits:
            raise EventRefused(f"{event.kind}: {name_of(firing.key)} waits for nothing at all")
        suspension = Suspension(event.waits, event.mode)
        catch_up(firing, suspension)
        firing.suspensions[event.call] = suspension

    def _node_suspended(self, event: ev.NodeSuspended) -> None:
        firing = self._run_of(event)
        check_silent(firing, event)
        for suspension in firing.suspensions.values():
            if event.token in suspension.tokens:
                self._park(firing, suspension)
                return
        raise EventRefused(f"{event.kind}: {name_of(firing.key)} has no suspension with that token on record")

    def _node_retry_scheduled(self, event: ev.NodeRetryScheduled) -> None:
        firing = self._run_of(event)
        if event.attempt != firing.attempts + 1:
            raise EventRefused(
                f"{event.kind}: try {event.attempt} of {name_of(firing.key)} cannot have failed, "
                f"{firing.attempts} failed before"
            )
        firing.attempts = event.attempt
        firing.logged = 0
        forget_last_failures(firing)
        backoff = Suspension.of_retry(event)
        catch_up(firing, backoff)
        self._park(firing, backoff)

    def _suspension_resolved(self, event: ev.SuspensionResolved) -> None:
        key = (event.node, event.frames)
        firing = self.firings.get(key)
        if firing is None or firing.status in ("waiting", "due"):
            raise EventRefused(f"{event.kind} of {name_of(key)}, which has not started")
        if firing.status not in _OPEN:
            return
        known = (firing.parked_on, firing.suspensions.get(event.call))
        suspension = next((each for each in known if each and event.token in each.tokens), None)
        if suspension is None:
            if firing.early is None:
                firing.early = {}
            firing.early.setdefault(event.token, event)
            return
        suspension.resolve(event)
        self._wake(firing)

    def _node_completed(self, event: ev.NodeCompleted) -> None:
        self._stop(self._run_of(event), "completed", None)

    def _node_failed(self, event: ev.NodeFailed) -> None:
        firing = self._run_of(event)
        self.failures.append(firing)
        self._stop(firing, "failed", Failure(event.node, event.frames, event.error))

    def _node_cancelled(self, event: ev.NodeCancelled) -> None:
        key = (event.node, event.frames)
        firing = self.parked.get(key) or self._run_of(event)
        firing.reason = event.reason
        self.failures.append(firing)
        error = {"message": event.reason, "type": "Cancelled"}
        self._stop(firing, "cancelled", Failure(event.node, event.frames, error))

    def _port_emitted(self, event: ev.PortEmitted) -> None:
        firing = self._run_of(event)
        port = event.port
        wires = wires_of(firing, port)
        check_call(firing, event)
        sent = firing.sent
        if port not in sent:
            value = fresh(event.value)
            self._send(firing, port, wires, value)
            sent[port] = value
        elif sent[port] is CLOSED:
            raise EmissionError(f"{name_of(firing.key)} emitted on {port} after closing it")
        elif not same(sent[port], event.value):
            raise EmissionError(f"{name_of(firing.key)} emitted on {port} again, and another value")
        record_call(firing, event.call, port, sent[port])

    def _port_closed(self, event: ev.PortClosed) -> None:
        firing = self._run_of(event)
        port = event.port
        wires = wires_of(firing, port)
        check_call(firing, event)
        if port not in firing.sent:
            firing.sent[port] = CLOSED
            self._close(wires, event.frames, None)
        elif firing.sent[port] is not CLOSED:
            raise EmissionError(f"{name_of(firing.key)} closed {port} after emitting on it")
        record_call(firing, event.call, port, CLOSED)

    def _run_output(self, event: ev.RunOutput) -> None:
        firing = self._run_of(event)
        check_position(firing, event.call)
        firing.outputs[event.call] = event

    def _logged(self, event: ev.LogLine | ev.CostReported) -> None:
        firing = self._run_of(event)
        firing.logged += 1

    def _execution_tagged(self, event: ev.ExecutionTagged) -> None:
        """Tags decide nothing inside the run that carries them."""

    def _execution_ended(self, event: Ending) -> None:
        self.ended = event
        self._due.clear()

    def _run_of(self, event: Any) -> Firing:
        key = (event.node, event.frames)
        firing = self.running.get(key)
        if firing is None:
            known = self.firings.get(key)
            state = f"is {known.status}" if known else "was never reached"
            raise EventRefused(f"{event.kind} of {name_of(key)}, which is not running: it {state}")
        return firing


def _not_due(event: Event, key: Key, what: str) -> EventRefused:
    return EventRefused(f"{event.kind}: {name_of(key)} is not due to {what}")


_APPLY: Final[dict[type[Event], Callable[[RunState, Any], None]]] = {
    ev.ExecutionStarted: RunState._execution_started,
    ev.NodeKicked: RunState._node_kicked,
    ev.NodeStarted: RunState._node_started,
    ev.NodeResumed: RunState._node_resumed,
    ev.PortEmitted: RunState._port_emitted,
    ev.PortClosed: RunState._port_closed,
    ev.RunOutput: RunState._run_output,
    ev.SuspensionRegistered: RunState._suspension_registered,
    ev.NodeSuspended: RunState._node_suspended,
    ev.SuspensionResolved: RunState._suspension_resolved,
    ev.NodeRetryScheduled: RunState._node_retry_scheduled,
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
