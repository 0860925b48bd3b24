"""Small programs, a line a node, and a tiny interpreter that drives `RunState` with scripted bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.flow import events as ev
from weft.flow.firing import Failure, Firing
from weft.flow.selection import Selection
from weft.flow.state import Kick, Plan, Resume, RunState, Skip, Suspension
from weft.lang.graph import GATES, MISSING, Edge, InputPort, Node, OutputPort, Program

Step = tuple[str, Any]
"""What a body does next; after its last step it ends.

- `("emit", {port: value, …})`, where a value `ANSWER` is what the last wait gave; `("close", port)`;
- `("log", text)`; `("fail", message)`; `("flaky", n)`: the first n tries fail here, and are tried again;
- `("run", value)`: a `ctx.run`; `("flaky run", n)`: one that fails the first n tries, and the try with it;
- `("wait", Wait)`.
"""

ANSWER = "<the answer>"

End = tuple[Any, ...] | None
"""How the outside ends a wait: `("answered", value)`, `("timed_out",)`, `("skipped",)`; None: not by itself."""


@dataclass(frozen=True)
class Wait:
    """A wait of one part or several, and how the outside ends each."""

    ends: tuple[End, ...]
    mode: ev.Mode = "first"
    kind: str = "form"

    def gives(self) -> list[Any]:
        """What the body gets in the end, whatever the order: at most one part may decide."""
        kinds = [end[0] for end in self.ends if end and end[0] != "answered"] or ["answered"]
        return [kinds[0], [end[1] if end and end[0] == "answered" else None for end in self.ends]]


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
    """A run under way: `events` is its journal so far, `bodies_alive` holds what the bodies that run do."""

    state: RunState
    bodies: Mapping[str, Body] = field(default_factory=dict)
    events: list[ev.Event] = field(default_factory=list)
    bodies_alive: dict[ev.Key, list[Step]] = field(default_factory=dict)
    waited: dict[ev.Key, None] = field(default_factory=dict)
    told_late: set[str] = field(default_factory=set)

    def apply(self, event: ev.Event) -> None:
        self.state.apply(event)
        self.events.append(event)
        if isinstance(event, (ev.SuspensionRegistered, ev.NodeRetryScheduled)):
            self.waited[event.node, event.frames] = None

    def recover(self) -> None:
        """After a crash: the bodies of what was running run again."""
        for key in self.state.running:
            self._enter(key)
        self.waited = dict.fromkeys(key for key, each in self.state.firings.items() if each.unanswered)

    def steps(self) -> list[Callable[[], None]]:
        """Everything that may happen next: what is due in order, then what bodies do, then the outside."""
        due = [lambda each=each: self._follow(each) for each in self.state.due()]
        return due + [lambda key=key: self._body_step(key) for key in self.bodies_alive] + list(self._outside())

    def _follow(self, due: Any) -> None:
        key = (due.node, due.frames)
        if isinstance(due, Kick):
            self.apply(ev.NodeKicked(*key))
        elif isinstance(due, Skip):
            self.apply(ev.NodeSkipped(*key, due.reason))
        elif isinstance(due, Resume):
            self.apply(ev.NodeResumed(*key, due.token))
            self._enter(key)
        else:
            self.apply(ev.NodeStarted(*key))
            self._enter(key)

    # --- bodies -------------------------------------------------------------------------------------------

    def _enter(self, key: ev.Key) -> None:
        body = self.bodies.get(key[0], [("emit", {"out": key[0]})])
        self.bodies_alive[key] = list(body(self.state.inputs(key)) if callable(body) else body)

    def _leave(self, event: ev.Event) -> None:
        del self.bodies_alive[event.node, event.frames]
        self.apply(event)

    def _body_step(self, key: ev.Key) -> None:
        """Do the first thing from the body's top that is not on record."""
        firing = self.state.running[key]
        calls = lines = position = 0
        answer: Any = None
        for what, detail in self.bodies_alive[key]:
            if what in ("emit", "close"):
                if calls == len(firing.calls):
                    return self._speak(key, calls, what, detail, answer)
                calls += 1
            elif what == "log":
                if lines == firing.logged:
                    return self.apply(ev.LogLine(*key, "info", detail))
                lines += 1
            elif what == "run":
                if position not in firing.outputs:
                    return self.apply(ev.RunOutput(*key, position, "run", detail))
                position += 1
            elif what == "flaky run":
                output = firing.outputs.get(position)
                if output is None:
                    outcome = {"value": 1} if firing.attempts >= detail else {"error": BOOM}
                    return self.apply(ev.RunOutput(*key, position, "run", **outcome))
                if output.error is not None:
                    return self._try_again(firing)
                position += 1
            elif what == "wait":
                suspension = firing.suspensions.get(position)
                if suspension is None:
                    return self._register(key, position, detail)
                if suspension.outcome is None or suspension.outcome.kind == "skipped":
                    return self._leave(ev.NodeSuspended(*key, suspension.tokens[0]))
                answer = _answer(suspension)
                position += 1
            elif what == "flaky":
                if firing.attempts < detail:
                    return self._try_again(firing)
            else:
                return self._leave(ev.NodeFailed(*key, {"message": detail, "type": "Boom"}))
        return self._leave(ev.NodeCompleted(*key))

    def _speak(self, key: ev.Key, call: int, what: str, detail: Any, answer: Any) -> None:
        if what == "close":
            self.apply(ev.PortClosed(*key, call, detail))
            return
        for port, value in detail.items():
            self.apply(ev.PortEmitted(*key, call, port, answer if value == ANSWER else value))

    def _register(self, key: ev.Key, call: int, wait: Wait) -> None:
        waits = tuple(
            {"token": token_of(key, call, part), "kind": wait.kind, "spec": {"end": end and list(end)}}
            for part, end in enumerate(wait.ends)
        )
        self.apply(ev.SuspensionRegistered(*key, call, waits, wait.mode))

    def _try_again(self, firing: Firing) -> None:
        attempt = firing.attempts + 1
        token = token_of(firing.key, -attempt, 0)
        self._leave(ev.NodeRetryScheduled(*firing.key, attempt, token, "2026-12-01T09:00:00.000Z", BOOM))

    # --- the outside --------------------------------------------------------------------------------------

    def _outside(self) -> Iterable[Callable[[], None]]:
        """The ends of open waits, and for each wait that has lost, one answer that comes too late."""
        if self.state.ended is not None:
            return
        for firing in map(self.state.firings.__getitem__, self.waited):
            waits = list(firing.suspensions.items())
            if firing.parked_on not in (None, *firing.suspensions.values()):
                waits.append((-firing.attempts, firing.parked_on))
            for call, suspension in waits:
                for wait in suspension.waits:
                    token = wait["token"]
                    end = wait["spec"]["end"] if "spec" in wait else ["answered", None]
                    if suspension.outcome is None and end and token not in suspension.answers:
                        yield lambda at=(*firing.key, call, token), end=end: self.end(*at, end)
                    elif suspension.outcome is not None and not end and token not in self.told_late:
                        yield lambda at=(*firing.key, call, token): self._end_late(*at)

    def end(self, node: str, frames: ev.Frames, call: int, token: str, end: Iterable[Any]) -> None:
        kind, *value = end
        flags = {} if kind == "answered" else {kind: True}
        self.apply(ev.SuspensionResolved(node, frames, call, token, *(value or [MISSING]), "someone", **flags))

    def _end_late(self, node: str, frames: ev.Frames, call: int, token: str) -> None:
        self.told_late.add(token)
        self.end(node, frames, call, token, ("answered", "too late"))

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


BOOM = {"message": "boom", "type": "Boom"}


def token_of(key: ev.Key, call: int, part: int) -> str:
    return f"{key[0]}/{call}/{part}"


def _answer(suspension: Suspension) -> Any:
    woken = suspension.outcome
    return [woken.kind, [None if each is None or each.value is MISSING else each.value for each in woken.answers]]


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
            [(call, _suspension(each, ordered)) for call, each in firing.suspensions.items()],
            firing.parked_on and _suspension(firing.parked_on, ordered),
            firing.early,
            firing.logged,
            firing.attempts,
            _failure(firing.failure),
        )
        for firing in state.firings.values()
    }
    whole: list[Any] = [sorted(firings.items())]
    failures = [firing.key for firing in state.failures]
    if ordered:
        whole += [state.open_text(), state.idle, failures, state.due(), state.outcome(), state.ended]
    else:
        outcome = state.outcome()
        whole += [sorted(state.running), sorted(state.parked), sorted(failures), state.due(), outcome and outcome.kind]
    return repr(whole)


def _suspension(suspension: Suspension, ordered: bool) -> Any:
    woken = suspension.outcome
    if ordered:
        return suspension.waits, suspension.mode, list(suspension.answers.values()), woken
    answers = sorted(map(repr, suspension.answers.values()))
    return suspension.waits, suspension.mode, answers, woken and (woken.kind, woken.answers)


def _failure(failure: Failure | None) -> Any:
    return failure and (failure.node, failure.frames, failure.error["message"])
