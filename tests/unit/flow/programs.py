"""Small programs, a line a node, and a tiny interpreter that drives `RunState` with scripted bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.flow import events as ev
from weft.flow.firing import Failure
from weft.flow.selection import Selection
from weft.flow.state import Kick, Plan, RunState, Skip
from weft.lang.graph import GATES, Edge, InputPort, Node, OutputPort, Program

Step = tuple[str, Any]
"""`("emit", {port: value, …})`, `("close", port)`, `("log", text)`, `("fail", message)`; then it ends."""

Script = Iterable[Step]
Body = Script | Callable[[dict[str, Any]], Script]


def inp(name: str, **facts: Any) -> InputPort:
    return InputPort(name, "T", **facts)


def node(name: str, *inputs: str | InputPort, out: str = "out", one_of: tuple[tuple[str, ...], ...] = ()) -> Node:
    """`"x!"` is a required input, `"x"` an optional one; `out` lists the outputs, apart by blanks."""
    ports = [
        port if isinstance(port, InputPort) else inp(port.rstrip("!"), required=port.endswith("!")) for port in inputs
    ]
    outputs = tuple(OutputPort(each, "T") for each in out.split())
    return Node(name, "Any", tuple(ports), outputs, one_of=one_of)


def program(*nodes: Node, wires: str = "") -> Program:
    """`wires` is `a.out>b.x c.out>b._should_flow`; a gate that a wire leads to appears by itself."""
    edges = []
    driven: dict[str, set[str]] = {}
    for wire in wires.split():
        source, target = wire.split(">")
        edge = Edge(*source.split("."), *target.split("."))
        edges.append(edge)
        driven.setdefault(edge.target, set()).add(edge.target_port)
    return Program("test.weft", tuple(_wired(each, driven.get(each.id, set())) for each in nodes), tuple(edges))


def _wired(each: Node, names: set[str]) -> Node:
    known = {port.name for port in each.inputs}
    gates = tuple(inp(gate, wired=True) for gate in GATES if gate in names - known)
    inputs = tuple(replace(port, wired=port.name in names) for port in each.inputs) + gates
    return replace(each, inputs=inputs)


@dataclass
class Run:
    """A run under way: `events` is its journal so far."""

    state: RunState
    bodies: Mapping[str, Body] = field(default_factory=dict)
    events: list[ev.Event] = field(default_factory=list)
    pending: dict[ev.Key, list[Step]] = field(default_factory=dict)

    def apply(self, event: ev.Event) -> None:
        self.state.apply(event)
        self.events.append(event)

    def steps(self) -> list[Callable[[], None]]:
        """Everything that may happen next, what is due first, in order."""
        due = [lambda each=each: self._follow(each) for each in self.state.due()]
        return due + [lambda key=key: self._body_step(key) for key in self.pending]

    def _follow(self, due: Any) -> None:
        if isinstance(due, Kick):
            self.apply(ev.NodeKicked(due.node, due.frames))
        elif isinstance(due, Skip):
            self.apply(ev.NodeSkipped(due.node, due.frames, due.reason))
        else:
            self.apply(ev.NodeStarted(due.node, due.frames))
            body = self.bodies.get(due.node, [("emit", {"out": due.node})])
            bag = self.state.inputs((due.node, due.frames))
            self.pending[due.node, due.frames] = list(body(bag) if callable(body) else body)

    def _body_step(self, key: ev.Key) -> None:
        steps = self.pending[key]
        if not steps:
            del self.pending[key]
            self.apply(ev.NodeCompleted(*key))
            return
        what, detail = steps.pop(0)
        call = len(self.state.running[key].calls)
        if what == "emit":
            for port, value in detail.items():
                self.apply(ev.PortEmitted(*key, call, port, value))
        elif what == "close":
            self.apply(ev.PortClosed(*key, call, detail))
        elif what == "log":
            self.apply(ev.LogLine(*key, "info", detail))
        else:
            del self.pending[key]
            self.apply(ev.NodeFailed(*key, {"message": detail, "type": "Boom"}))

    # --- what tests ask -----------------------------------------------------------------------------------

    def status(self, name: str) -> str:
        """`completed`, `failed`, …; `skipped: reason`; `unreached`."""
        firing = self.state.firings.get((name, ()))
        if firing is None:
            return "unreached"
        return f"skipped: {firing.reason}" if firing.status == "skipped" else firing.status

    def statuses(self) -> dict[str, str]:
        return {name: self.status(name) for name in self.state.plan.nodes}

    def failure(self, name: str) -> str | None:
        """The node in which the failure that this one passes on began."""
        failure = self.state.firings[name, ()].failure
        return failure and failure.node

    def bag(self, name: str) -> dict[str, Any]:
        return self.state.inputs((name, ()))


def begin(of: Program, selection: Selection | None = None, bodies: Mapping[str, Body] | None = None) -> Run:
    run = Run(RunState(Plan(of, selection)), bodies or {})
    chosen = selection.to_json() if selection else None
    run.apply(ev.ExecutionStarted("project", of.hash, of.entry, chosen))
    return run


def run_to_end(
    of: Program,
    bodies: Mapping[str, Body] | None = None,
    selection: Selection | None = None,
    choose: Callable[[list[Any]], Any] = lambda steps: steps[0],
) -> Run:
    """Drive a run until nothing is left to do; `choose` picks the next step."""
    run = begin(of, selection, bodies)
    while steps := run.steps():
        choose(steps)()
    return run


def replay(of: Program, events: Iterable[ev.Event], selection: Selection | None = None) -> RunState:
    state = RunState(Plan(of, selection))
    for event in events:
        state.apply(event)
    return state


def snapshot(state: RunState, *, ordered: bool = True) -> str:
    """All of a state as text, types told apart. Unordered: without what the order of events may change."""
    firings = {
        repr(firing.key): (
            firing.status,
            firing.reason,
            firing.awaited,
            sorted(firing.values.items()),
            sorted((port, _failure(failure)) for port, failure in firing.closed.items()),
            sorted((port, repr(value)) for port, value in firing.sent.items()),
            firing.calls,
            sorted(firing.outputs.items()),
            firing.logged,
            _failure(firing.failure),
        )
        for firing in state.firings.values()
    }
    whole: list[Any] = [sorted(firings.items())]
    failures = [firing.key for firing in state.failures]
    if ordered:
        whole += [state.open_text(), failures, state.due(), state.outcome(), state.ended]
    else:
        outcome = state.outcome()
        whole += [sorted(state.running), sorted(failures), state.due(), outcome and outcome.kind]
    return repr(whole)


def _failure(failure: Failure | None) -> Any:
    return failure and (failure.node, failure.frames, failure.error["message"])
