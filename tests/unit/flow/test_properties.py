"""Properties of every run: replay, order, endings, snapshots, and agreement with the reference.

Bodies emit, fail, call, wait and are tried again; the outside ends waits at any moment, and too late as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.flow.programs import ANSWER, Run, Wait, begin, inp, node, program, replay, run_to_end, snapshot
from tests.unit.flow.reference import Closure, settle
from weft.errors import SelectionRefused
from weft.flow import events as ev
from weft.flow.firing import CLOSED
from weft.flow.selection import Selection, select
from weft.flow.state import Plan, RunState
from weft.lang.graph import GATES, MISSING, Edge, InputPort, Node, Program

ENDED = {"completed", "failed", "skipped", "cancelled"}
VALUES = [None, False, False, True, 0, 1, "", "text", [], {}, {"k": [1, None]}]
OUTPUTS = ("p", "q")
seeds = st.integers(0, 2**32)


def examples(count: int) -> settings:
    """Without a limit of time for each, which a busy machine would break."""
    return settings(max_examples=count, deadline=None)


@dataclass
class Script:
    """What a body does whatever it gets; the marker `ECHO` stands for its input bag."""

    steps: list[tuple[str, Any]]

    def __call__(self, bag: dict[str, Any]) -> list[tuple[str, Any]]:
        return [
            (what, {port: bag if value == ECHO else value for port, value in detail.items()})
            if what == "emit"
            else (what, detail)
            for what, detail in self.steps
        ]

    def plain(self, bag: dict[str, Any]) -> list[tuple[str, Any]]:
        """The same without waits: with what they give."""
        steps: list[tuple[str, Any]] = []
        answer: Any = None
        for what, detail in self(bag):
            if what == "emit":
                steps.append((what, {port: answer if value == ANSWER else value for port, value in detail.items()}))
            elif what == "wait":
                answer = detail.gives()
                if answer[0] == "skipped":
                    return [("skip", None)]
            else:
                steps.append((what, detail))
        return steps


ECHO = "<the bag>"


@dataclass
class Case:
    program: Program
    scripts: dict[str, Script]
    selection: Selection | None

    def run(self, seed: int) -> Run:
        return run_to_end(self.program, self.scripts, self.selection, Random(seed).choice)


def _waits() -> list[Wait]:
    """One of each sort, with at most one end that decides, so that the order of ends decides nothing."""
    yes, never = ("answered", "yes"), None
    return [
        Wait((yes,)),
        Wait((("answered", None),), kind="timer"),
        Wait((("timed_out",),)),
        Wait((("skipped",),)),
        Wait((never, yes)),
        Wait((yes, never, never)),
        Wait((never, ("timed_out",))),
        Wait((("skipped",), never)),
        Wait((yes, ("answered", "two")), "all"),
        Wait((yes,), "all"),
        Wait((never, ("timed_out",)), "all"),
        Wait((("skipped",), never), "all"),
    ]


BEFORE = [
    *(("wait", wait) for wait in _waits()),
    *[("run", None), ("flaky", 1), ("flaky", 2), ("flaky run", 1), ("flaky run", 2), ("log", "a line")],
]


@st.composite
def scripts(draw: Any) -> Script:
    steps: list[tuple[str, Any]] = draw(st.lists(st.sampled_from(BEFORE), max_size=3))
    emitted: dict[str, Any] = {}
    for port in draw(st.permutations(OUTPUTS)):
        match draw(st.sampled_from(["emit", "emit", "answer", "echo", "close", "nothing"])):
            case "emit":
                emitted[port] = draw(st.sampled_from(VALUES))
            case "answer":
                emitted[port] = ANSWER
            case "echo":
                emitted[port] = ECHO
            case "close":
                steps.append(("close", port))
        if emitted and draw(st.booleans()):
            steps.append(("emit", emitted))
            emitted = {}
    if emitted:
        steps.append(("emit", emitted))
    if draw(st.integers(0, 3)) == 0:
        steps.insert(draw(st.integers(0, len(steps))), ("flaky", 1))
    if draw(st.integers(0, 3)) == 0:
        steps.insert(draw(st.integers(0, len(steps))), ("fail", "boom"))
        steps = steps[: steps.index(("fail", "boom")) + 1]
    return Script(steps)


@st.composite
def ports(draw: Any, name: str, sources: list[str]) -> tuple[InputPort, str | None]:
    """An input and, where it is wired, the output that feeds it."""
    kinds = ["wired"] * 4 if sources else []
    kind = draw(st.sampled_from([*kinds, "literal", "default", "nothing"]))
    when_wired = draw(st.integers(0, 4)) == 0
    if kind == "wired":
        default = draw(st.sampled_from([MISSING, 1]))
        port = inp(name, required=draw(st.booleans()), required_when_wired=when_wired, default=default)
        return port, draw(st.sampled_from(sources))
    capable = draw(st.integers(0, 3)) > 0
    given_ = {} if kind == "nothing" else {kind: draw(st.sampled_from(VALUES))}
    return inp(name, wire_capable=capable, required_when_wired=when_wired, **given_), None


@st.composite
def programs(draw: Any, *, loops: bool = False) -> tuple[Program, dict[str, Script]]:
    """A program whose written order has nothing to do with who feeds whom; without cycles unless asked for."""
    names = [f"n{index}" for index in range(draw(st.integers(1, 7)))]
    wires: list[str] = []
    nodes: dict[str, Node] = {}
    for rank, name in enumerate(names):
        sources = [f"{other}.{port}" for other in (names if loops else names[:rank]) for port in OUTPUTS]
        made = [draw(ports(each, sources)) for each in "xyz"[: draw(st.integers(0, 3))]]
        gate = draw(st.sampled_from([None, None, *GATES]))
        if gate and sources and draw(st.booleans()):
            made.append((inp(gate), draw(st.sampled_from(sources))))
        elif gate:
            made.append((inp(gate, literal=draw(st.sampled_from(VALUES))), None))
        plain = [port.name for port, _ in made if port.name not in GATES]
        groups = ()
        if plain and draw(st.integers(0, 2)) == 0:
            members = draw(st.lists(st.sampled_from(plain), min_size=1, unique=True))
            groups = (tuple(members),)
        nodes[name] = node(name, *(port for port, _ in made), out=" ".join(OUTPUTS), one_of=groups)
        wires += [f"{source}>{name}.{port.name}" for port, source in made if source]
    written = draw(st.permutations(names))
    of = program(*(nodes[name] for name in written), wires=" ".join(wires))
    return of, {name: draw(scripts()) for name in names}


@st.composite
def selections(draw: Any, of: Program) -> Selection | None:
    """A selection that is not refused, or None."""
    names = [each.id for each in of.nodes]
    some = st.lists(st.sampled_from(names), max_size=2, unique=True)
    by_id = {each.id: each for each in of.nodes}
    by_hand = {
        name: {
            port: draw(st.sampled_from(VALUES))
            for port in [*(each.name for each in by_id[name].inputs), *GATES]
            if draw(st.integers(0, 3)) == 0
        }
        for name in draw(some)
    }
    emits = {
        name: {port: draw(st.sampled_from(VALUES)) for port in draw(st.sets(st.sampled_from(OUTPUTS)))}
        for name in draw(some)
    }
    selection = Selection(tuple(draw(some)), (), by_hand, emits)
    try:
        select(of, selection)
    except SelectionRefused:
        return None
    return selection


@st.composite
def cases(draw: Any) -> Case:
    of, bodies = draw(programs())
    selection = draw(selections(of)) if draw(st.booleans()) else None
    return Case(of, bodies, selection)


def stored(events: list[ev.Event]) -> list[ev.Event]:
    return [ev.decode(json.loads(ev.encode(event))) for event in events]


def as_text(values: dict[str, Any]) -> str:
    return repr(sorted(values.items()))


@examples(60)
@given(cases(), seeds)
def test_the_fold_agrees_with_the_reference(case, seed):
    run = case.run(seed)
    selected = select(case.program, case.selection or Selection())
    expected = settle(case.program, {name: each.plain for name, each in case.scripts.items()}, selected)
    assert run.statuses() == {name: each.status for name, each in expected.items()}
    for name, each in expected.items():
        firing = run.state.firings[name, ()]
        assert as_text(run.bag(name)) == as_text(each.bag)
        values = {port: value for port, value in firing.sent.items() if value is not CLOSED}
        closures = {port: sent for port, sent in each.sent.items() if isinstance(sent, Closure)}
        assert as_text(values) == as_text({port: value for port, value in each.sent.items() if port not in closures})
        for port, closure in closures.items():
            told = None if port in firing.sent else firing.failure
            assert (told and told.node) == closure.failure
    failed = any(each.status == "failed" for each in expected.values())
    assert run.state.outcome().kind == ("failed" if failed else "completed")


@examples(35)
@given(cases(), seeds)
def test_live_and_replay_are_equal_at_every_prefix(case, seed):
    live = begin(case.program, case.selection, case.scripts)
    choose = Random(seed).choice
    while True:
        read = replay(case.program, stored(live.events), case.selection)
        assert snapshot(read) == snapshot(live.state)
        steps = live.steps()
        if not steps:
            break
        choose(steps)()


@examples(35)
@given(cases(), seeds, st.data())
def test_a_run_that_crashed_anywhere_ends_as_if_it_had_not(case, seed, data):
    whole = case.run(seed)
    cuts = [
        cut
        for cut in range(1, len(whole.events) + 1)
        if cut == len(whole.events) or not _one_call(whole.events[cut - 1], whole.events[cut])
    ]
    kept = whole.events[: data.draw(st.sampled_from(cuts))]
    again = Run(replay(case.program, stored(kept), case.selection), case.scripts, list(kept))
    again.recover()
    choose = Random(seed + 1).choice
    while steps := again.steps():
        choose(steps)()
    assert snapshot(again.state, ordered=False) == snapshot(whole.state, ordered=False)


def _one_call(one: ev.Event, other: ev.Event) -> bool:
    same_kind = isinstance(one, ev.PortEmitted) and isinstance(other, ev.PortEmitted)
    return same_kind and (one.node, one.frames, one.call) == (other.node, other.frames, other.call)


@examples(35)
@given(cases(), seeds, st.data())
def test_the_moment_at_which_the_engine_learns_of_an_end_does_not_matter(case, seed, data):
    whole = case.run(seed)
    order = list(whole.events)
    ends = [event for event in order if isinstance(event, ev.SuspensionResolved)]
    for end in data.draw(st.lists(st.sampled_from(ends), max_size=3)) if ends else []:
        at = next(index for index, event in enumerate(order) if event is end)
        first, last = _span(order, at)
        del order[at]
        order.insert(data.draw(st.integers(first, last)), end)
    assert snapshot(replay(case.program, order, case.selection), ordered=False) == snapshot(whole.state, ordered=False)


def _span(order: list[ev.Event], at: int) -> tuple[int, int]:
    """Where else the end of a wait may stand: after its firing's start, before its body made use of it."""
    end = order[at]

    def binds(event: ev.Event, *free: type[ev.Event]) -> bool:
        mine = getattr(event, "node", None) == end.node and getattr(event, "frames", None) == end.frames
        return mine and not isinstance(event, free)

    may_precede = (ev.SuspensionRegistered, ev.NodeSuspended, ev.NodeRetryScheduled, ev.LogLine, ev.RunOutput)
    first = next(index for index in range(at - 1, -1, -1) if binds(order[index], *may_precede)) + 1
    last = next((index for index in range(at + 1, len(order)) if binds(order[index], ev.NodeSuspended)), len(order))
    return first, last - 1


@examples(30)
@given(cases(), seeds)
def test_a_restored_state_behaves_as_the_original(case, seed):
    live = begin(case.program, case.selection, case.scripts)
    chance = Random(seed)
    restored: list[RunState] = []
    done = len(live.events)
    while True:
        for state in restored:
            for event in stored(live.events[done:]):
                state.apply(event)
        if chance.random() < 0.3:
            text = json.dumps(live.state.snapshot())
            restored.append(RunState.restore(Plan(case.program, case.selection), json.loads(text)))
            assert json.dumps(restored[-1].snapshot()) == text
        expected = visible(live.state)
        assert all(visible(state) == expected for state in restored)
        steps = live.steps()
        if not steps:
            break
        done = len(live.events)
        chance.choice(steps)()


def visible(state: RunState) -> str:
    """All that can be asked of a state, types told apart: of a firing that has ended only how."""
    firings = {
        repr(key): (firing.status, firing.reason) + (() if firing.status in ENDED else _record(state, key))
        for key, firing in state.firings.items()
    }
    failures = [(each.key, each.failure) for each in state.failures]
    whole = [sorted(firings.items()), state.due(), state.open_text(), state.idle, state.outcome(), failures]
    return repr([*whole, list(state.running), list(state.parked), state.ended])


def _record(state: RunState, key: ev.Key) -> tuple[Any, ...]:
    firing = state.firings[key]
    suspensions = [(call, each.outcome, each.unanswered) for call, each in firing.suspensions.items()]
    on = firing.parked_on and firing.parked_on.tokens
    record = (firing.calls, list(firing.outputs.items()), suspensions, firing.logged, firing.attempts, on)
    return (state.inputs(key), firing.sent, sorted(firing.unanswered), *record)


@examples(35)
@given(cases(), seeds, seeds)
def test_the_order_of_independent_events_does_not_matter(case, one, other):
    assert snapshot(case.run(one).state, ordered=False) == snapshot(case.run(other).state, ordered=False)


@examples(35)
@given(cases(), seeds)
def test_every_run_ends_and_each_selected_node_ends_once(case, seed):
    run = case.run(seed)
    assert run.state.due() == []
    assert run.state.outcome() is not None
    assert run.state.open_text() == "[]"
    assert {firing.status for firing in run.state.firings.values()} <= ENDED
    assert {name for name, _ in run.state.firings} == set(run.state.plan.nodes)
    endings = (ev.NodeCompleted, ev.NodeFailed, ev.NodeSkipped)
    ended = [event.node for event in run.events if isinstance(event, endings)]
    assert sorted(ended) == sorted(run.state.plan.nodes)


@examples(35)
@given(programs(loops=True), seeds)
def test_a_run_of_any_graph_ends_and_only_a_stuck_one_keeps_a_firing_waiting(made, seed):
    of, bodies = made
    run = run_to_end(of, bodies, choose=Random(seed).choice)
    outcome = run.state.outcome()
    waiting = {name for (name, _), each in run.state.firings.items() if each.status == "waiting"}
    assert (outcome.kind == "stuck") == bool(waiting)
    for name in waiting:
        assert f"  {name} holds " in outcome.error
    for name, plan in run.state.plan.nodes.items():
        if run.status(name) == "unreached":
            silent = {source.split(".")[0] for source in plan.awaits.values()}
            assert silent
            assert all(run.status(each) in ("unreached", "waiting") for each in silent)


@examples(35)
@given(programs(), st.data())
def test_no_selection_that_is_accepted_gets_stuck(made, data):
    of, bodies = made
    selection = data.draw(selections(of))
    run = run_to_end(of, bodies, selection)
    assert run.state.outcome().kind in ("completed", "failed")
    if selection is not None:
        chosen = Selection.from_json(json.loads(json.dumps(selection.to_json())))
        assert chosen == selection
        assert list(Plan(of, chosen).nodes) == list(select(of, selection).nodes)


@examples(30)
@given(programs())
def test_a_stored_program_plans_the_same_run(made):
    of, bodies = made
    again = Program.from_text(of.text())
    assert snapshot(run_to_end(of, bodies).state) == snapshot(run_to_end(again, bodies).state)
    assert all(isinstance(edge, Edge) for edge in again.edges)
