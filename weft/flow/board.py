"""The board of a run: its firings, which of them are due, run or are parked, and what follows from a step.

Knows nothing of events and refuses nothing but an emission that collides with another value; `state.py` makes
the steps.
"""

from __future__ import annotations

from typing import Any

from weft.errors import EmissionError
from weft.flow.events import Ending, Frames, Key
from weft.flow.firing import Failure, Firing, Status, name_of
from weft.flow.outcome import Outcome, outcome_of
from weft.flow.plan import NodePlan, Plan, Wires
from weft.flow.ready import Due, Skip, Start, awake, decide
from weft.flow.suspension import Suspension
from weft.flow.texts import firing_text
from weft.flow.values import fresh, same


class Board:
    """One run of a plan.

    `firings` holds every firing that anything has reached, `running` those whose bodies run, in the order they
    started or resumed, `parked` those whose bodies have left and will come back, in that order; `failures` are
    the failed and cancelled firings in the order they ended; `ended` is the event that ended the run.
    """

    __slots__ = ("_due", "_open", "_waiting", "ended", "failures", "firings", "parked", "plan", "running", "started")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.firings: dict[Key, Firing] = {}
        self.running: dict[Key, Firing] = {}
        self.parked: dict[Key, Firing] = {}
        self.failures: list[Firing] = []
        self.started = False
        self.ended: Ending | None = None
        self._due: dict[Key, Due] = {}
        self._waiting = 0
        self._open: str | None = "[]"

    def due(self) -> list[Due]:
        """What is to be kicked, started, skipped or resumed now, in source order. Asking changes nothing."""
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
        """The running firings, then the parked ones, as the JSON text of a list of `[node, *frames]`."""
        if self._open is None:
            self._open = f"[{','.join([firing_text(key) for key in (*self.running, *self.parked)])}]"
        return self._open

    @property
    def idle(self) -> bool:
        """Whether nothing can go on until a wait ends: something is parked, nothing runs and nothing is due."""
        return bool(self.parked) and not self.running and not self._due and self.ended is None

    def outcome(self) -> Outcome | None:
        """How the run is to end. None while something runs, is parked or due, before its start and after its end."""
        if self._due or self.running or self.parked or not self.started or self.ended is not None:
            return None
        waiting = [each for each in self.firings.values() if each.status == "waiting"] if self._waiting else []
        return outcome_of(self.failures, waiting)

    # --- from a snapshot ----------------------------------------------------------------------------------

    def reached(self, key: Key) -> Firing:
        """A new firing, for whoever restores a state."""
        return self._firing(self.plan.nodes[key[0]], key)

    def judge_anew(self) -> None:
        """Find out what is due from the firings alone."""
        self._open = None
        for firing in self.firings.values():
            if firing.status == "waiting":
                if firing.awaited:
                    self._waiting += 1
                else:
                    self._settle(firing)
        for firing in self.parked.values():
            self._wake(firing)
        if self.started:
            self._due.update((key, kick) for key, kick in self.plan.kicks.items() if key not in self.firings)
        if self.ended is not None:
            self._due.clear()

    # --- what follows -------------------------------------------------------------------------------------

    def _firing(self, node: NodePlan, key: Key) -> Firing:
        firing = self.firings[key] = Firing(node, key)
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

    def _park(self, firing: Firing, suspension: Suspension) -> None:
        key = firing.key
        del self.running[key]
        self.parked[key] = firing
        self._open = None
        firing.status = "parked"
        firing.parked_on = suspension
        self._wake(firing)

    def _wake(self, firing: Firing) -> None:
        due = awake(firing)
        if due is not None:
            self._due[firing.key] = due

    def _unpark(self, firing: Firing) -> None:
        del self.parked[firing.key]
        self._due.pop(firing.key, None)
        self._open = None
        firing.parked_on = None

    def _stop(self, firing: Firing, status: Status, failure: Failure | None) -> None:
        if firing.status == "parked":
            self._unpark(firing)
        else:
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
