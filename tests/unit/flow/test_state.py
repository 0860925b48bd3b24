"""The fold: what is recorded, what is refused, and what a body that runs again finds."""

from __future__ import annotations

import json

import pytest

from tests.unit.flow.programs import begin, inp, node, program, replay, run_to_end, snapshot
from weft.errors import EmissionError, EventRefused, RunEnded
from weft.flow import events as ev
from weft.flow.state import CLOSED, Kick, Plan, RunState, Skip, Start


@pytest.fixture
def running():
    """A run in which `a`, with three outputs, has started."""
    run = begin(program(node("a", out="x y z"), node("b", "in_!"), wires="a.x>b.in_"))
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    return run


def test_nothing_is_due_before_the_start():
    state = RunState(Plan(program(node("a"))))
    assert state.due() == []
    assert state.outcome() is None
    with pytest.raises(EventRefused):
        state.apply(ev.NodeKicked("a"))


def test_a_root_is_kicked_then_started():
    run = begin(program(node("a")))
    assert run.state.due() == [Kick("a", ())]
    run.apply(ev.NodeKicked("a"))
    assert run.state.due() == [Start("a", ())]
    assert run.state.due() == [Start("a", ())], "asking changes nothing"


def test_a_kicked_root_goes_through_its_gate():
    run = begin(program(node("a", inp("_should_flow", literal=False))))
    run.apply(ev.NodeKicked("a"))
    assert run.state.due() == [Skip("a", (), "did_not_flow")]


def test_an_empty_program_completes():
    assert run_to_end(program()).state.outcome().kind == "completed"


def test_the_open_firings_stand_in_start_order():
    run = begin(program(node("b"), node('a"'), node("c")))
    assert run.state.open_text() == "[]"
    for name in ('a"', "c", "b"):
        run.apply(ev.NodeKicked(name))
        run.apply(ev.NodeStarted(name))
    assert json.loads(run.state.open_text()) == [['a"'], ["c"], ["b"]]
    run.apply(ev.NodeCompleted("c"))
    assert json.loads(run.state.open_text()) == [['a"'], ["b"]]


def test_a_resumed_firing_keeps_its_record(running):
    running.apply(ev.PortEmitted("a", (), 0, "x", 1))
    running.apply(ev.PortEmitted("a", (), 0, "y", None))
    running.apply(ev.PortClosed("a", (), 1, "z"))
    running.apply(ev.RunOutput("a", (), 0, "roll", None))
    running.apply(ev.RunOutput("a", (), 3, "roll", error={"message": "m", "type": "T"}))
    running.apply(ev.LogLine("a", (), "info", "line"))
    running.apply(ev.CostReported("a", (), "llm", None))
    running.apply(ev.NodeResumed("a"))
    firing = running.state.running["a", ()]
    assert firing.calls == [(("x", 1), ("y", None)), (("z", CLOSED),)]
    assert firing.outputs[0].value is None
    assert firing.outputs[3].error == {"message": "m", "type": "T"}
    assert sorted(firing.outputs) == [0, 3]
    assert firing.logged == 2
    assert running.state.open_text() == '[["a"]]'


@pytest.mark.parametrize("call", [2, 5])
def test_emitting_calls_are_recorded_without_a_gap(running, call):
    running.apply(ev.PortEmitted("a", (), 0, "x", 1))
    with pytest.raises(EventRefused, match="belongs to call"):
        running.apply(ev.PortEmitted("a", (), call, "y", 1))
    with pytest.raises(EventRefused, match="belongs to call"):
        running.apply(ev.PortEmitted("a", (), 0, "x", 1))


def test_an_outcome_of_a_call_is_recorded_once(running):
    running.apply(ev.RunOutput("a", (), 0, "n", 1))
    with pytest.raises(EventRefused, match="call 0"):
        running.apply(ev.RunOutput("a", (), 0, "n", 1))


@pytest.mark.parametrize("event", [ev.PortEmitted("a", (), 0, "w", 1), ev.PortClosed("a", (), 0, "w")])
def test_an_undeclared_output_is_refused_by_name(running, event):
    with pytest.raises(EmissionError, match=r"a has no output w \(it has: x, y, z\)"):
        running.apply(event)


def test_closing_twice_is_closing(running):
    running.apply(ev.PortClosed("a", (), 0, "x"))
    running.apply(ev.PortClosed("a", (), 1, "x"))
    assert running.state.due() == [Skip("b", (), "required_input_closed")]


@pytest.mark.parametrize(
    "event",
    [
        ev.ExecutionStarted("project", "h", "e"),
        ev.NodeKicked("a"),
        ev.NodeKicked("b"),
        ev.NodeKicked("nobody"),
        ev.NodeStarted("a"),
        ev.NodeStarted("b"),
        ev.NodeSkipped("b", (), "required_input_closed"),
        ev.NodeCompleted("b"),
        ev.NodeFailed("b", (), {"message": "m", "type": "T"}),
        ev.NodeCancelled("b", (), "r"),
        ev.NodeResumed("b"),
        ev.PortEmitted("b", (), 0, "out", 1),
        ev.PortClosed("b", (), 0, "out"),
        ev.RunOutput("b", (), 0, "n", 1),
        ev.LogLine("b", (), "info", "t"),
        ev.CostReported("nobody", (), "s", 1),
    ],
    ids=lambda event: f"{event.kind}-{getattr(event, 'node', '')}",
)
def test_an_event_that_does_not_fit_changes_nothing(running, event):
    before = snapshot(running.state)
    with pytest.raises(EventRefused):
        running.apply(event)
    assert snapshot(running.state) == before


def test_a_skip_names_the_reason_that_is_due():
    run = begin(program(node("a", "x")))
    run.apply(ev.NodeKicked("a"))
    with pytest.raises(EventRefused):
        run.apply(ev.NodeSkipped("a", (), "flow_closed"))
    with pytest.raises(EventRefused):
        run.apply(ev.NodeStarted("a"))
    run.apply(ev.NodeSkipped("a", (), "every_input_closed"))


@pytest.mark.parametrize(
    "ending",
    [ev.ExecutionCompleted(), ev.ExecutionFailed("e"), ev.ExecutionCancelled("r", {"kind": "person"})],
)
def test_after_the_end_every_event_is_refused(running, ending):
    running.apply(ev.PortEmitted("a", (), 0, "x", 1))
    running.apply(ending)
    assert running.state.ended is ending
    assert running.state.due() == []
    assert running.state.outcome() is None
    for event in (ev.NodeCompleted("a"), ev.LogLine("a", (), "info", "t"), ending):
        with pytest.raises(RunEnded, match=event.kind):
            running.apply(event)


def test_tags_change_nothing(running):
    before = snapshot(running.state)
    running.apply(ev.ExecutionTagged("a", (), ("t",)))
    running.apply(ev.ExecutionTagged(None, (), ("t",)))
    assert snapshot(running.state) == before


def test_the_earliest_failure_is_told_and_the_other_branches_run_to_the_end():
    of = program(node("z"), node("a"), node("ok"), node("after", "x!"), wires="ok.out>after.x")
    bodies = {"a": [("fail", "first")], "z": [("fail", "second")]}
    run = run_to_end(of, bodies, choose=lambda steps: steps[-1])
    assert run.status("after") == "completed"
    outcome = run.state.outcome()
    assert (outcome.kind, outcome.error) == ("failed", "a failed: first (and 1 more firing failed)")


def test_a_failure_that_an_optional_input_absorbed_still_fails_the_run():
    of = program(node("a"), node("b"), node("c", "x", "y!"), wires="a.out>c.x b.out>c.y")
    run = run_to_end(of, {"a": [("fail", "boom")]})
    assert run.status("c") == "completed"
    assert run.failure("c") is None
    assert run.state.outcome().kind == "failed"


def test_a_cancelled_firing_closes_with_a_failure_that_says_why():
    run = begin(program(node("a"), node("b", "x!"), wires="a.out>b.x"))
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    run.apply(ev.NodeCancelled("a", (), "Stopped by execution 7 (tag t)", {"kind": "execution"}))
    (due,) = run.state.due()
    assert due.failure.error == {"message": "Stopped by execution 7 (tag t)", "type": "Cancelled"}


def test_of_several_failures_the_first_in_the_order_of_the_ports_is_passed_on():
    of = program(node("p"), node("q"), node("c", "x!", "y!"), wires="q.out>c.x p.out>c.y")
    for slow in ("p", "q"):
        bodies = {name: [("log", "…")] * (name == slow) + [("fail", name)] for name in ("p", "q")}
        assert run_to_end(of, bodies).failure("c") == "q"


def test_a_value_is_what_it_was_when_it_was_emitted(running):
    mine = {"list": [1]}
    running.apply(ev.PortEmitted("a", (), 0, "x", mine))
    mine["list"].append(2)
    bag = running.bag("b")
    assert bag == {"in_": {"list": [1]}}
    bag["in_"]["list"].clear()
    assert running.bag("b") == {"in_": {"list": [1]}}


def test_a_body_cannot_change_the_program():
    of = program(node("a", inp("x", literal=[[[1]]]), inp("y", default={"k": {}})))
    plan = Plan(of)
    for _ in range(2):
        state = RunState(plan)
        state.apply(ev.ExecutionStarted("project", "h", "e"))
        state.apply(ev.NodeKicked("a"))
        bag = state.inputs(("a", ()))
        assert bag == {"x": [[[1]]], "y": {"k": {}}}
        bag["x"][0][0].append(2)
        bag["y"]["k"]["new"] = 1


def test_the_bag_has_no_gates_and_the_order_of_the_ports():
    of = program(
        node("g"),
        node("b", inp("z", literal=1), "y", inp("x", default=2)),
        wires="g.out>b.y g.out>b._should_flow",
    )
    assert list(run_to_end(of).bag("b")) == ["z", "y", "x"]


def test_required_when_wired_and_one_of_groups():
    of = program(
        node("gone"),
        node("b", inp("x", required_when_wired=True), inp("y", literal=1)),
        node("c", "x", "y", inp("z", default=1), one_of=(("x", "y"), ("x", "z"))),
        node("d", "x", inp("y", literal=1), one_of=(("x", "y"),)),
        wires="gone.out>b.x gone.out>c.x gone.out>d.x",
    )
    run = run_to_end(of, {"gone": []})
    assert run.status("b") == "skipped: required_input_closed"
    assert run.status("c") == "skipped: one_of_group_closed", "a default fills no one-of group"
    assert run.status("d") == "completed"
    assert run.failure("c") is None
    assert run_to_end(of, {"gone": [("fail", "boom")]}).failure("c") == "gone"


def test_a_replayed_crash_goes_on_where_it_was(running):
    running.apply(ev.PortEmitted("a", (), 0, "x", 1))
    running.apply(ev.NodeStarted("b"))
    state = replay(program(node("a", out="x y z"), node("b", "in_!"), wires="a.x>b.in_"), running.events)
    assert list(state.running) == [("a", ()), ("b", ())]
    assert state.inputs(("b", ())) == {"in_": 1}
    assert state.due() == []
