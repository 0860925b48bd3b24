"""Parked firings: what they wait for, what wakes them, and what a naive implementation gets wrong."""

from __future__ import annotations

import json

import pytest

from tests.unit.flow.programs import ANSWER, Run, Wait, begin, node, program, replay, snapshot, token_of
from weft.errors import EmissionError, EventRefused, RunEnded
from weft.flow import events as ev
from weft.flow.state import Plan, Resume, RunState, Skip

YES = ("answered", "yes")
ONE = Wait((YES,))
ASKS = [("wait", ONE), ("emit", {"out": ANSWER})]
NEVER = Wait((None,))
ERROR = {"message": "m", "type": "T"}


def quiet(run: Run) -> Run:
    """Let everything happen that needs nothing from outside."""
    while True:
        inside = len(run.state.due()) + len(run.bodies_alive)
        if not inside:
            return run
        run.steps()[0]()


def parked(of=None, **bodies) -> Run:
    return quiet(begin(of or program(*(node(name) for name in bodies)), bodies=bodies))


def answer(run: Run, name: str, value=None, *, call: int = 0, part: int = 0, kind: str = "answered") -> None:
    end = (kind, value) if kind == "answered" else (kind,)
    run.end(name, (), call, token_of((name, ()), call, part), end)


def kinds(run: Run, name: str) -> list[str]:
    return [event.kind for event in run.events if getattr(event, "node", None) == name]


def emitted(run: Run, name: str):
    return run.state.firings[name, ()].sent["out"]


# --- parking and waking -----------------------------------------------------------------------------------


def test_a_parked_firing_wakes_by_its_answer_and_its_body_runs_again():
    run = parked(a=ASKS)
    assert run.status("a") == "parked"
    assert list(run.state.parked) == [("a", ())]
    assert run.state.running == {}
    assert run.state.due() == []
    assert run.state.open_text() == '[["a"]]'
    answer(run, "a", 7)
    assert run.state.due() == [Resume("a", (), "a/0/0")]
    assert not run.state.idle
    quiet(run)
    assert run.state.open_text() == "[]"
    assert emitted(run, "a") == ["answered", [7]]
    assert kinds(run, "a") == [
        *("node_kicked", "node_started", "suspension_registered", "node_suspended"),
        *("suspension_resolved", "node_resumed", "port_emitted", "node_completed"),
    ]


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"k": None}])
def test_an_answer_of_any_value_is_an_answer(value):
    run = parked(a=ASKS)
    answer(run, "a", value)
    assert emitted(quiet(run), "a") == ["answered", [value]]


def test_an_answer_that_comes_before_the_firing_has_parked_wakes_it_as_soon_as_it_has():
    run = begin(program(node("a")), bodies={"a": ASKS})
    for _ in range(3):
        run.steps()[0]()
    assert run.state.firings["a", ()].suspensions[0].outcome is None
    answer(run, "a", 7)
    assert run.state.due() == [], "the body has not left yet"
    run.apply(ev.NodeSuspended("a", (), "a/0/0"))
    assert run.state.due() == [Resume("a", (), "a/0/0")]


def test_the_first_answer_counts():
    run = parked(a=ASKS)
    answer(run, "a", "first")
    before = snapshot(run.state)
    answer(run, "a", "second")
    answer(run, "a", kind="skipped")
    assert snapshot(run.state) == before


def test_an_answer_after_the_firing_ended_is_dropped_and_after_the_run_ended_refused():
    run = parked(a=[("wait", ONE), ("fail", "boom")], b=[("wait", NEVER)])
    answer(run, "a", 1)
    quiet(run)
    before = snapshot(run.state)
    answer(run, "a", 2)
    assert snapshot(run.state) == before
    run.apply(ev.ExecutionCancelled("r"))
    with pytest.raises(RunEnded):
        answer(run, "b", 1)


@pytest.mark.parametrize("name", ["later", "nobody"])
def test_an_answer_for_what_never_started_is_refused(name):
    run = parked(program(node("a"), node("later", "x!"), wires="a.out>later.x"), a=ASKS)
    before = snapshot(run.state)
    with pytest.raises(EventRefused, match="not started"):
        answer(run, name, 1)
    assert snapshot(run.state) == before


def test_a_firing_resumes_only_by_what_woke_it():
    run = parked(a=[("wait", Wait((YES, YES)))])
    with pytest.raises(EventRefused, match="not due to resume"):
        run.apply(ev.NodeResumed("a", (), "a/0/0"))
    answer(run, "a", part=1)
    for token in ("a/0/0", None):
        with pytest.raises(EventRefused):
            run.apply(ev.NodeResumed("a", (), token))
    run.apply(ev.NodeResumed("a", (), "a/0/1"))
    with pytest.raises(EventRefused, match="not due to resume"):
        run.apply(ev.NodeResumed("a", (), "a/0/1"))
    run.apply(ev.NodeResumed("a"))


def test_after_a_crash_what_was_parked_is_parked_and_what_had_resumed_runs():
    run = parked(a=ASKS, b=ASKS)
    assert json.loads(run.state.open_text()) == [["a"], ["b"]]
    answer(run, "b", 1)
    run.steps()[0]()
    assert json.loads(run.state.open_text()) == [["b"], ["a"]]
    state = replay(program(node("a"), node("b")), run.events)
    assert list(state.running) == [("b", ())]
    assert list(state.parked) == [("a", ())]
    assert state.open_text() == run.state.open_text()


@pytest.mark.parametrize(
    "event",
    [
        ev.NodeSuspended("a", (), "a/0/0"),
        ev.NodeCompleted("a"),
        ev.NodeFailed("a", (), ERROR),
        ev.PortEmitted("a", (), 0, "out", 1),
        ev.LogLine("a", (), "info", "t"),
        ev.RunOutput("a", (), 1, "n", 1),
        ev.SuspensionRegistered("a", (), 1, ({"token": "t", "kind": "form", "spec": {}},)),
        ev.NodeRetryScheduled("a", (), 1, "t", "2026-12-01T09:00:00.000Z", ERROR),
        ev.NodeSkipped("a", (), "wait_skipped"),
        ev.NodeStarted("a"),
    ],
    ids=lambda event: event.kind,
)
def test_the_body_of_a_parked_firing_does_nothing(event):
    run = parked(a=ASKS)
    before = snapshot(run.state)
    with pytest.raises(EventRefused):
        run.apply(event)
    assert snapshot(run.state) == before


def test_parking_names_a_suspension_on_record_and_a_suspension_has_a_wait():
    run = begin(program(node("a")), bodies={"a": []})
    run.steps()[0]()
    run.steps()[0]()
    with pytest.raises(EventRefused, match="no suspension with that token"):
        run.apply(ev.NodeSuspended("a", (), "t"))
    with pytest.raises(EventRefused, match="nothing at all"):
        run.apply(ev.SuspensionRegistered("a", (), 0, ()))


def test_waits_and_calls_share_their_positions():
    run = parked(a=[("run", 1), ("wait", ONE), ("run", 2)])
    assert list(run.state.firings["a", ()].suspensions) == [1]
    answer(run, "a", call=1)
    run.steps()[0]()
    for event in (
        ev.RunOutput("a", (), 1, "n", 1),
        ev.SuspensionRegistered("a", (), 1, ({"token": "t", "kind": "form", "spec": {}},)),
        ev.SuspensionRegistered("a", (), 0, ({"token": "t", "kind": "form", "spec": {}},)),
    ):
        with pytest.raises(EventRefused, match="on record already"):
            run.apply(event)
    assert quiet(run).status("a") == "completed"


# --- several waits at once --------------------------------------------------------------------------------


def test_of_all_each_is_awaited_and_the_answers_stand_in_the_order_of_the_waits():
    run = parked(a=[("wait", Wait((YES, YES, YES), "all")), ("emit", {"out": ANSWER})])
    suspension = run.state.firings["a", ()].suspensions[0]
    for part in (2, 0):
        answer(run, "a", part, part=part)
        assert run.state.due() == []
    assert suspension.unanswered == ["a/0/1"]
    answer(run, "a", 1, part=1)
    assert run.state.due() == [Resume("a", (), "a/0/1")]
    assert emitted(quiet(run), "a") == ["answered", [0, 1, 2]]


@pytest.mark.parametrize("mode", ["first", "all"])
def test_a_time_out_of_one_part_ends_the_whole(mode):
    run = parked(a=[("wait", Wait((YES, YES), mode)), ("emit", {"out": ANSWER})])
    answer(run, "a", kind="timed_out", part=1)
    assert run.state.firings["a", ()].unanswered == ["a/0/0"]
    answer(run, "a", "late")
    assert emitted(quiet(run), "a") == ["timed_out", [None, None]]


@pytest.mark.parametrize("mode", ["first", "all"])
def test_a_skipped_form_skips_the_firing_without_a_failure_and_closes_its_ports(mode):
    of = program(node("a"), node("b", "x!"), wires="a.out>b.x")
    run = parked(of, a=[("wait", Wait((YES, YES), mode)), ("emit", {"out": ANSWER})])
    answer(run, "a", kind="skipped")
    assert run.state.due() == [Skip("a", (), "wait_skipped")]
    quiet(run)
    assert run.status("a") == "skipped: wait_skipped"
    assert run.status("b") == "skipped: required_input_closed"
    assert run.failure("b") is None
    assert run.state.parked == {}
    assert run.state.open_text() == "[]"
    assert run.state.outcome().kind == "completed"


def test_a_form_that_was_skipped_before_the_firing_parked_skips_it_when_it_has():
    run = begin(program(node("a")), bodies={"a": ASKS})
    for _ in range(3):
        run.steps()[0]()
    answer(run, "a", kind="skipped")
    assert quiet(run).status("a") == "skipped: wait_skipped"


# --- tries ------------------------------------------------------------------------------------------------


def test_a_failed_try_parks_the_firing_until_its_rest_is_over():
    run = parked(a=[("log", "try"), ("flaky", 2), ("emit", {"out": 1})])
    firing = run.state.firings["a", ()]
    for attempt in (1, 2):
        assert run.status("a") == "parked"
        assert firing.attempts == attempt
        assert run.state.idle
        answer(run, "a", call=-attempt)
        quiet(run)
    assert run.status("a") == "completed"
    assert run.state.outcome().kind == "completed"
    assert kinds(run, "a").count("log_line") == 3, "each try tells its own lines"


def test_a_rest_ends_whatever_call_its_end_names_and_tries_are_counted_without_a_gap():
    run = parked(a=[("flaky", 1)])
    run.apply(ev.SuspensionResolved("a", (), 0, "a/-1/0", by="timer"))
    run.apply(ev.NodeResumed("a", (), "a/-1/0"))
    for attempt in (1, 3):
        with pytest.raises(EventRefused, match=f"try {attempt} of a"):
            run.apply(ev.NodeRetryScheduled("a", (), attempt, "t", "2026-12-01T09:00:00.000Z", ERROR))


def test_the_next_try_makes_the_failed_call_again_and_no_other():
    run = parked(a=[("run", "kept"), ("wait", ONE), ("flaky run", 1), ("emit", {"out": ANSWER})])
    answer(run, "a", "yes", call=1)
    quiet(run)
    firing = run.state.firings["a", ()]
    assert list(firing.outputs) == [0]
    answer(run, "a", call=-1)
    assert emitted(quiet(run), "a") == ["answered", ["yes"]]
    outcomes = [event.call for event in run.events if isinstance(event, ev.RunOutput)]
    assert outcomes == [0, 2, 2]


def test_a_failed_call_that_the_body_went_on_after_stays_on_record():
    run = begin(program(node("a")), bodies={"a": []})
    run.steps()[0]()
    run.steps()[0]()
    run.apply(ev.RunOutput("a", (), 0, "caught", error=ERROR))
    run.apply(ev.RunOutput("a", (), 1, "fallback", 1))
    run.apply(ev.RunOutput("a", (), 2, "fatal", error=ERROR))
    run.apply(ev.NodeRetryScheduled("a", (), 1, "t", "2026-12-01T09:00:00.000Z", ERROR))
    assert list(run.state.firings["a", ()].outputs) == [0, 1]


def test_a_failed_call_that_the_body_waited_after_stays_on_record():
    run = begin(program(node("a")), bodies={"a": []})
    run.steps()[0]()
    run.steps()[0]()
    run.apply(ev.RunOutput("a", (), 0, "caught", error=ERROR))
    run.apply(ev.SuspensionRegistered("a", (), 1, ({"token": "t", "kind": "form", "spec": {}},)))
    run.apply(ev.NodeRetryScheduled("a", (), 1, "r", "2026-12-01T09:00:00.000Z", ERROR))
    assert list(run.state.firings["a", ()].outputs) == [0]
    assert run.state.firings["a", ()].unanswered == ["t", "r"]


def test_a_rest_that_ended_before_it_was_known_is_over_at_once():
    run = begin(program(node("a")), bodies={"a": [("flaky", 1)]})
    run.steps()[0]()
    run.steps()[0]()
    answer(run, "a", call=-1)
    assert quiet(run).status("a") == "completed"


def test_what_a_failed_try_had_emitted_stands():
    of = program(node("a", out="out more"), node("b", "x!"), wires="a.out>b.x")
    run = parked(of, a=[("emit", {"out": 1}), ("flaky", 1), ("emit", {"more": 2})])
    assert run.status("b") == "completed"
    assert run.state.firings["a", ()].calls == [(("out", 1),)]
    answer(run, "a", call=-1)
    assert quiet(run).status("a") == "completed"


def test_a_parked_or_resting_firing_can_be_cancelled():
    run = parked(a=ASKS, b=[("flaky", 1)])
    answer(run, "a", 1)
    for name in ("a", "b"):
        run.apply(ev.NodeCancelled(name, (), "stopped", {"kind": "person"}))
    assert run.state.due() == []
    assert run.state.parked == {}
    assert run.state.outcome().kind == "failed"
    with pytest.raises(EventRefused):
        run.apply(ev.NodeCancelled("a", (), "stopped"))


# --- snapshots --------------------------------------------------------------------------------------------


def test_a_snapshot_of_another_version_is_refused():
    state = parked(a=ASKS).state
    with pytest.raises(ValueError, match="version 2 cannot be read"):
        RunState.restore(state.plan, {**state.snapshot(), "version": 2})
    with pytest.raises(ValueError, match="version None"):
        RunState.restore(state.plan, {})


def test_a_snapshot_does_not_grow_with_what_has_ended():
    names = [f"n{index}" for index in range(50)]
    bodies = {name: [("run", "x" * 1000), ("emit", {"out": "y" * 1000})] for name in names}
    run = parked(program(*map(node, names), node("last")), last=ASKS, **bodies)
    assert len(json.dumps(run.state.snapshot())) < 1500


def restored(run: Run) -> RunState:
    return RunState.restore(run.state.plan, json.loads(json.dumps(run.state.snapshot())))


@pytest.mark.parametrize("kind", ["answered", "timed_out", "skipped"])
def test_a_restored_firing_is_due_what_the_end_of_its_wait_makes_it(kind):
    run = parked(a=ASKS)
    answer(run, "a", kind=kind)
    state = restored(run)
    assert state.due() == run.state.due() != []
    assert state.firings["a", ()].suspensions[0].outcome == run.state.firings["a", ()].suspensions[0].outcome


def test_a_restored_run_goes_on_waiting_for_all_parts_and_through_its_rests():
    run = parked(a=[("wait", Wait((YES, YES), "all"))], b=[("flaky", 2), ("emit", {"out": 1})])
    answer(run, "a", 1)
    answer(run, "b", call=-1)
    quiet(run)
    run.state = restored(run)
    assert run.state.due() == []
    assert run.state.firings["a", ()].unanswered == ["a/0/1"]
    assert run.state.firings["b", ()].attempts == 2
    answer(run, "a", 2, part=1)
    answer(run, "b", call=-2)
    assert [due.node for due in run.state.due()] == ["a", "b"]
    assert quiet(run).status("b") == "completed"


def test_a_restored_body_finds_its_lines_and_its_early_ends_and_a_cancel_its_reason():
    run = begin(program(node("b"), node("a")), bodies={"a": [("log", "one"), ("log", "two"), *ASKS], "b": ASKS})
    while run.events[-1].kind != "log_line":
        run.steps()[0]()
    answer(run, "a", "early")
    run.apply(ev.NodeCancelled("b", (), "stopped"))
    run.state = restored(run)
    assert run.state.firings["b", ()].reason == "stopped"
    assert run.state.firings["a", ()].logged == 1
    quiet(run)
    assert kinds(run, "a").count("log_line") == 2
    assert emitted(run, "a") == ["answered", ["early"]]


def test_a_restored_run_knows_who_is_stuck_and_what_failed():
    of = program(
        *(node("a"), node("bad"), node("c", "x!", "y!", "z"), node("d", "x!")),
        wires="a.out>c.x d.out>c.y bad.out>c.z c.out>d.x",
    )
    run = parked(of, a=ASKS, bad=[("fail", "boom")])
    answer(run, "a", 1)
    quiet(run)
    state = restored(run)
    assert state.outcome() == run.state.outcome()
    assert state.outcome().kind == "stuck"
    assert "bad failed: boom" in state.outcome().error
    assert state.firings["c", ()].closed["z"].node == "bad"


def test_a_snapshot_before_the_start_and_after_the_end():
    of = program(node("a"), node("b"))
    for state in (RunState(Plan(of)), begin(of).state):
        again = RunState.restore(Plan(of), json.loads(json.dumps(state.snapshot())))
        assert again.due() == state.due()
        assert again.started == state.started
    run = parked(of, a=ASKS, b=[])
    run.apply(ev.ExecutionCancelled("why", {"kind": "person"}))
    again = RunState.restore(Plan(of), json.loads(json.dumps(run.state.snapshot())))
    assert again.ended == run.state.ended
    assert again.outcome() is None
    with pytest.raises(RunEnded):
        again.apply(ev.NodeCompleted("a"))


# --- races ------------------------------------------------------------------------------------------------


def test_races_36_a_wait_that_ended_before_it_was_registered_does_not_hang():
    run = begin(program(node("a")), bodies={"a": ASKS})
    run.steps()[0]()
    run.steps()[0]()
    answer(run, "a", "early")
    answer(run, "a", "second")
    assert emitted(quiet(run), "a") == ["answered", ["early"]]


def test_races_38_a_wake_touches_the_woken_firing_alone():
    names = [f"n{index}" for index in range(5)]
    run = parked(**dict.fromkeys(names, ASKS))
    others = {name: kinds(run, name) for name in names if name != "n2"}
    answer(run, "n2", 1)
    assert [due.node for due in run.state.due()] == ["n2"]
    quiet(run)
    assert {name: kinds(run, name) for name in others} == others
    assert list(run.state.parked) == [(name, ()) for name in others]


@pytest.mark.parametrize("spoken", [ev.PortEmitted("a", (), 0, "out", 1), ev.PortClosed("a", (), 0, "out")])
def test_races_39_who_has_emitted_or_closed_cannot_wait(spoken):
    run = begin(program(node("a", out="out more")), bodies={"a": []})
    run.steps()[0]()
    run.steps()[0]()
    wait = ({"token": "t", "kind": "form", "spec": {}},)
    with_wait = replay(program(node("a", out="out more")), run.events)
    with_wait.apply(ev.SuspensionRegistered("a", (), 0, wait))
    with pytest.raises(EmissionError, match="while it waits"):
        with_wait.apply(spoken)
    with_wait.apply(ev.SuspensionResolved("a", (), 0, "t", 1))
    with_wait.apply(spoken)
    with pytest.raises(EventRefused, match="it can wait no more"):
        with_wait.apply(ev.NodeSuspended("a", (), "t"))
    run.apply(spoken)
    before = snapshot(run.state)
    with pytest.raises(EventRefused, match="it can wait no more"):
        run.apply(ev.SuspensionRegistered("a", (), 0, wait))
    assert snapshot(run.state) == before


def test_races_49_who_waits_for_an_answer_is_not_stuck_and_who_is_stuck_does_not_wait():
    of = program(node("a"), node("c", "x!", "y!"), node("d", "x!"), wires="a.out>c.x d.out>c.y c.out>d.x")
    run = parked(of, a=ASKS)
    assert run.state.idle
    assert run.state.outcome() is None, "c and d can never run, but a still may"
    answer(run, "a", 1)
    quiet(run)
    assert not run.state.idle
    assert run.state.outcome().kind == "stuck"


def test_races_50_a_run_waits_only_when_nothing_else_can_run():
    run = begin(program(node("a"), node("b"), node("c", "x!"), wires="b.out>c.x"), bodies={"a": [("wait", NEVER)]})
    seen = []
    while run.state.due() or run.bodies_alive:
        seen.append(run.state.idle)
        run.steps()[0]()
    assert not any(seen)
    assert len(seen) > 6
    assert run.state.idle
    assert run.status("c") == "completed"


# --- faults -----------------------------------------------------------------------------------------------


def test_faults_b26_a_node_with_two_open_questions_waits_for_the_second_answer():
    run = parked(a=[("log", "counter"), ("run", 1), ("wait", Wait((YES, YES), "all")), ("emit", {"out": ANSWER})])
    done = len(run.events)
    answer(run, "a", "one", call=1)
    assert quiet(run).state.idle
    assert len(run.events) == done + 1, "nothing ran for the first answer"
    answer(run, "a", "two", call=1, part=1)
    assert emitted(quiet(run), "a") == ["answered", ["one", "two"]]
    assert kinds(run, "a").count("log_line") == kinds(run, "a").count("run_output") == 1


def test_faults_b28_an_answer_goes_to_the_question_that_it_names():
    run = parked(a=ASKS, b=ASKS)
    answer(run, "b", "for b")
    quiet(run)
    assert emitted(run, "b") == ["answered", ["for b"]]
    assert run.status("a") == "parked"
    assert run.state.firings["a", ()].unanswered == ["a/0/0"]


def test_faults_b29_an_answer_is_not_used_again_for_a_later_question():
    of = program(node("a"), node("b", "x!"), wires="a.out>b.x")
    twice = [("wait", ONE), ("wait", ONE), ("emit", {"out": ANSWER})]
    run = parked(of, a=twice, b=ASKS)
    answer(run, "a", "first")
    quiet(run)
    assert run.state.firings["a", ()].unanswered == ["a/1/0"], "the same question again is another question"
    answer(run, "a", "second", call=1)
    quiet(run)
    assert emitted(run, "a") == ["answered", ["second"]]
    assert run.status("b") == "parked"
    assert run.state.firings["b", ()].unanswered == ["b/0/0"]


def test_faults_b35_a_sibling_of_a_parked_node_finishes_and_nothing_fails():
    run = begin(program(node("b"), node("c")), bodies={"b": [("wait", NEVER)], "c": [("log", "1"), ("log", "2")]})
    while run.status("b") != "parked":
        run.steps()[0]()
    while run.status("c") != "completed":
        assert not run.state.idle
        assert run.state.outcome() is None
        run.steps()[-1]()
    assert run.state.idle
    assert run.state.outcome() is None
    assert run.state.failures == []


def test_faults_b39_a_run_waits_for_the_questions_of_every_branch():
    of = program(
        node("root"),
        *(node("a", "x!"), node("b", "x!"), node("join", "x!", "y!")),
        wires="root.out>a.x root.out>b.x a.out>join.x b.out>join.y",
    )
    run = parked(of, a=ASKS, b=ASKS)
    assert list(run.state.parked) == [("a", ()), ("b", ())]
    answer(run, "b", 1)
    assert quiet(run).state.idle
    answer(run, "a", 2)
    assert quiet(run).status("join") == "completed"
    assert run.state.outcome().kind == "completed"


def test_faults_b43_the_loser_of_a_race_keeps_nothing_open():
    run = parked(a=[("wait", Wait((YES, None))), ("emit", {"out": ANSWER})])
    suspension = run.state.firings["a", ()].suspensions[0]
    assert suspension.unanswered == ["a/0/0", "a/0/1"]
    answer(run, "a", "form")
    assert suspension.outcome.kind == "answered"
    assert suspension.unanswered == ["a/0/1"], "what is to be erased in the same step"
    quiet(run)
    assert not run.state.idle
    assert run.state.outcome().kind == "completed", "at once, not when the loser times out"
    before = snapshot(run.state)
    answer(run, "a", "too late", part=1)
    assert snapshot(run.state) == before
