"""What a naive implementation of the language gets wrong at run time, one test a statement."""

from __future__ import annotations

import pytest

from tests.unit.flow.programs import begin, inp, node, program, run_to_end
from weft.errors import EmissionError, EventRefused
from weft.flow import events as ev
from weft.flow.selection import Selection
from weft.flow.state import CLOSED

FAIL = [("fail", "boom")]
SILENT: list = []


def gives(value):
    return [("emit", {"out": value})]


def test_statement_01_null_is_a_value_and_a_closure_is_not():
    of = program(node("a"), node("b"), node("c", "x!", "y"), wires="a.out>c.x b.out>c.y")
    run = run_to_end(of, {"a": gives(None), "b": SILENT})
    assert run.status("c") == "completed"
    assert run.bag("c") == {"x": None}


@pytest.mark.parametrize("value", [0, "", None, [], {}, 0.0, "no", "false", True])
def test_statement_02_only_false_itself_blocks(value):
    of = program(node("a"), node("b", out="out"), wires="a.out>b._should_flow")
    assert run_to_end(of, {"a": gives(value)}).status("b") == "completed"
    inverted = program(node("a"), node("b"), wires="a.out>b._should_not_flow")
    assert run_to_end(inverted, {"a": gives(value)}).status("b") == "skipped: did_flow"


def test_statement_02_false_blocks():
    of = program(node("a"), node("b"), wires="a.out>b._should_flow")
    assert run_to_end(of, {"a": gives(False)}).status("b") == "skipped: did_not_flow"


@pytest.mark.parametrize("literal", [0, False])
def test_statement_02_a_written_gate_is_held_to_the_same(literal):
    of = program(node("a", inp("_should_flow", literal=literal)))
    assert run_to_end(of).status("a") == ("skipped: did_not_flow" if literal is False else "completed")


def test_statement_04_every_wired_input_settles_first_optional_ones_too():
    of = program(node("a"), node("b"), node("c", "x!", "y"), wires="a.out>c.x b.out>c.y")
    run = begin(of)
    for name in ("a", "b"):
        run.apply(ev.NodeKicked(name))
        run.apply(ev.NodeStarted(name))
    run.apply(ev.PortEmitted("a", (), 0, "out", 1))
    run.apply(ev.NodeCompleted("a"))
    assert run.state.due() == []
    run.apply(ev.PortClosed("b", (), 0, "out"))
    assert [due.node for due in run.state.due()] == ["c"]


def test_statement_05_nothing_stands_in_for_a_wire_that_closed():
    port = inp("x", literal="literal", default="default")
    of = program(node("a"), node("b", port, inp("y", literal=1), inp("z", default=2)), wires="a.out>b.x")
    run = run_to_end(of, {"a": SILENT})
    assert run.bag("b") == {"y": 1, "z": 2}


def test_statement_06_null_on_a_required_input_runs():
    of = program(node("a"), node("b", "x!"), wires="a.out>b.x")
    assert run_to_end(of, {"a": gives(None)}).status("b") == "completed"


def test_statement_07_every_input_closed_skips_though_all_are_optional():
    of = program(node("a"), node("b", "x", "y"), wires="a.out>b.x a.out>b.y")
    assert run_to_end(of, {"a": SILENT}).status("b") == "skipped: every_input_closed"
    unwired = program(node("a"), node("b", "x", "y"), wires="a.out>b.x")
    assert run_to_end(unwired, {"a": SILENT}).status("b") == "skipped: every_input_closed"


@pytest.mark.parametrize("kept", [{"default": None}, {"literal": 0}])
def test_statement_07_a_default_or_literal_on_an_unwired_input_keeps_it_alive(kept):
    of = program(node("a"), node("b", "x", inp("y", **kept)), wires="a.out>b.x")
    assert run_to_end(of, {"a": SILENT}).status("b") == "completed"


def test_statement_07_a_literal_only_input_neither_keeps_alive_nor_counts_as_dead():
    written = inp("mode", literal="fast", wire_capable=False)
    of = program(node("a"), node("b", "x", written), node("c", written), wires="a.out>b.x")
    run = run_to_end(of, {"a": SILENT})
    assert run.status("b") == "skipped: every_input_closed"
    assert run.status("c") == "completed"


def test_statement_07_a_kicked_node_is_held_to_it_too():
    run = run_to_end(program(node("a", "x"), node("b", inp("x", literal=1)), node("c")))
    assert run.statuses() == {"a": "skipped: every_input_closed", "b": "completed", "c": "completed"}


def test_statement_08_a_gate_keeps_no_node_alive():
    of = program(node("a", out="out gone"), node("b", "x"), wires="a.gone>b.x a.out>b._should_flow")
    assert run_to_end(of, {"a": gives(True)}).status("b") == "skipped: every_input_closed"


def test_statement_08_a_gate_is_no_input_of_a_node_without_inputs():
    of = program(node("a"), node("b"), wires="a.out>b._should_flow")
    run = run_to_end(of, {"a": gives(True)})
    assert run.status("b") == "completed"
    assert run.bag("b") == {}


def test_statement_10_an_inverted_gate_runs_on_a_true_absence_alone():
    of = program(node("a"), node("b"), wires="a.out>b._should_not_flow")
    assert run_to_end(of, {"a": SILENT}).status("b") == "completed"
    assert run_to_end(of, {"a": gives(False)}).status("b") == "completed"
    assert run_to_end(of, {"a": FAIL}).status("b") == "skipped: watched_node_failed"


def test_statement_10_a_failure_does_not_start_it_across_skips():
    of = program(
        node("a"),
        node("b", "x!"),
        node("c", "x"),
        node("d"),
        node("e"),
        wires="a.out>b.x b.out>c.x c.out>d._should_flow d.out>e._should_not_flow",
    )
    run = run_to_end(of, {"a": FAIL})
    assert run.statuses() == {
        "a": "failed",
        "b": "skipped: required_input_closed",
        "c": "skipped: every_input_closed",
        "d": "skipped: flow_closed",
        "e": "skipped: watched_node_failed",
    }


def test_statement_10_a_decision_passes_no_failure_on():
    of = program(
        node("a"),
        node("no"),
        node("b", "x"),
        node("c"),
        wires="a.out>b.x no.out>b._should_flow b.out>c._should_not_flow",
    )
    run = run_to_end(of, {"a": FAIL, "no": gives(False)})
    assert run.status("b") == "skipped: did_not_flow"
    assert run.status("c") == "completed"


def test_statement_10_literal_false_means_run():
    run = run_to_end(
        program(
            node("a", inp("_should_not_flow", literal=False)),
            node("b", inp("_should_not_flow", literal=True)),
        )
    )
    assert run.statuses() == {"a": "completed", "b": "skipped: did_flow"}


def test_statement_11_the_original_failure_stays_named():
    of = program(
        node("a"),
        node("b", "x!"),
        node("c", "x", "y", one_of=(("x", "y"),)),
        node("d"),
        wires="a.out>b.x b.out>c.x b.out>c.y c.out>d._should_not_flow",
    )
    run = run_to_end(of, {"a": FAIL})
    assert [run.failure(name) for name in "bcd"] == ["a", "a", "a"]
    assert run.state.outcome().error == "a failed: boom"


def test_statement_12_what_a_failed_node_sent_stays_sent():
    of = program(
        node("a", out="early shut late"),
        node("b", "x!"),
        node("c"),
        node("d"),
        wires="a.early>b.x a.shut>c._should_not_flow a.late>d._should_not_flow",
    )
    run = run_to_end(of, {"a": [("emit", {"early": 1}), ("close", "shut"), ("fail", "boom")]})
    assert run.status("b") == "completed"
    assert run.status("c") == "completed", "closed before the failure, so it carries none"
    assert run.status("d") == "skipped: watched_node_failed"
    assert run.state.firings["a", ()].sent == {"early": 1, "shut": CLOSED}


def test_statement_12_a_port_that_was_sent_cannot_be_closed_nor_a_closed_one_sent():
    run = begin(program(node("a", out="one two")))
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    run.apply(ev.PortEmitted("a", (), 0, "one", 1))
    run.apply(ev.PortClosed("a", (), 1, "two"))
    with pytest.raises(EmissionError, match="closed one after emitting on it"):
        run.apply(ev.PortClosed("a", (), 2, "one"))
    with pytest.raises(EmissionError, match="emitted on two after closing it"):
        run.apply(ev.PortEmitted("a", (), 2, "two", 1))


@pytest.mark.parametrize("ending", ["completed", "failed", "skipped", "cancelled"])
def test_statement_13_what_was_not_sent_closes_at_every_end(ending):
    of = program(node("a"), node("b", "x"), node("c", "x"), wires="a.out>b.x b.out>c.x")
    run = begin(of)
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    if ending == "skipped":
        run.apply(ev.NodeCompleted("a"))
        run.apply(ev.NodeSkipped("b", (), "every_input_closed"))
    else:
        run.apply(ev.PortEmitted("a", (), 0, "out", 1))
        run.apply(ev.NodeStarted("b"))
        run.apply(
            {
                "completed": ev.NodeCompleted("b"),
                "failed": ev.NodeFailed("b", (), {"message": "boom", "type": "Boom"}),
                "cancelled": ev.NodeCancelled("b", (), "stopped"),
            }[ending]
        )
    assert run.status("b").partition(":")[0] == ending
    (due,) = [due for due in run.state.due() if due.node == "c"]
    assert due.reason == "every_input_closed"
    assert (due.failure is not None) == (ending in ("failed", "cancelled"))


def test_statement_14_frames_match_exactly():
    run = begin(program(node("a"), node("b", "x!"), wires="a.out>b.x"))
    with pytest.raises(EventRefused):
        run.apply(ev.NodeKicked("a", (0,)))
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    for event in (
        ev.PortEmitted("a", (0,), 0, "out", 1),
        ev.NodeCompleted("a", (0,)),
        ev.NodeStarted("b", (0,)),
    ):
        with pytest.raises(EventRefused):
            run.apply(event)
    run.apply(ev.PortEmitted("a", (), 0, "out", 1))
    assert [(due.node, due.frames) for due in run.state.due()] == [("b", ())]


@pytest.mark.parametrize(
    ("first", "second"), [(1, 2), (1, True), (0, False), ([1], [True]), ({"a": None}, {}), ("1", 1)]
)
def test_statement_23_two_values_that_differ_are_an_error_of_the_later_emitter(first, second):
    of = program(node("a"), node("b"), node("c", "x!"), wires="a.out>c.x b.out>c.x")
    run = begin(of)
    for name in ("a", "b"):
        run.apply(ev.NodeKicked(name))
        run.apply(ev.NodeStarted(name))
    run.apply(ev.PortEmitted("a", (), 0, "out", first))
    with pytest.raises(EmissionError, match=r"a emitted on out again"):
        run.apply(ev.PortEmitted("a", (), 1, "out", second))
    with pytest.raises(EmissionError, match=r"b emitted on out, but c\.x already holds another value"):
        run.apply(ev.PortEmitted("b", (), 0, "out", second))
    assert run.state.firings["b", ()].sent == {}
    run.apply(ev.PortEmitted("b", (), 0, "out", first))
    assert run.bag("c") == {"x": first}
    assert [due.node for due in run.state.due()] == ["c"]


def test_statement_23_equal_values_count_once_and_a_value_beats_a_closure():
    of = program(node("a"), node("b"), node("c", "x!"), wires="a.out>c.x b.out>c.x")
    assert run_to_end(of, {"a": gives({"n": [1]}), "b": gives({"n": [1.0]})}).status("c") == "completed"
    for bodies in ({"a": SILENT, "b": gives(1)}, {"a": gives(1), "b": FAIL}):
        run = run_to_end(of, bodies)
        assert (run.status("c"), run.bag("c")) == ("completed", {"x": 1})


@pytest.mark.parametrize(("a", "b"), [(FAIL, SILENT), (SILENT, FAIL)])
def test_statement_23_a_failure_is_not_lost_beside_a_plain_closure(a, b):
    of = program(node("a"), node("b"), node("c", "x!"), wires="a.out>c.x b.out>c.x")
    run = run_to_end(of, {"a": a, "b": b})
    assert run.status("c") == "skipped: required_input_closed"
    assert run.failure("c") == ("a" if a is FAIL else "b")


def test_statement_26_the_first_in_written_order_is_known_once_all_settled():
    of = program(
        node("late"),
        node("early"),
        node("gone"),
        node("first", "z", "y", "x"),
        wires="gone.out>first.z late.out>first.y early.out>first.x",
    )
    run = begin(of)
    for name in ("late", "early", "gone"):
        run.apply(ev.NodeKicked(name))
        run.apply(ev.NodeStarted(name))
    run.apply(ev.PortEmitted("early", (), 0, "out", "early"))
    run.apply(ev.NodeCompleted("gone"))
    assert run.state.due() == []
    run.apply(ev.PortEmitted("late", (), 0, "out", None))
    assert list(run.bag("first").items()) == [("y", None), ("x", "early")]


def test_statement_27_an_output_that_is_not_emitted_closes_what_hangs_on_it():
    of = program(
        node("a"),
        node("b"),
        node("all", "a!", "b!", out="yes"),
        node("then"),
        node("else_"),
        wires="a.out>all.a b.out>all.b all.yes>then._should_flow all.yes>else_._should_not_flow",
    )
    run = run_to_end(of, {"a": gives(False), "all": SILENT})
    assert (run.status("then"), run.status("else_")) == ("skipped: flow_closed", "completed")
    run = run_to_end(of, {"a": SILENT})
    assert run.status("all") == "skipped: required_input_closed"
    assert (run.status("then"), run.status("else_")) == ("skipped: flow_closed", "completed")


def test_statement_28_one_case_runs_and_the_others_close():
    of = program(
        node("a"),
        node("switch", "value!", out="low high other"),
        node("low"),
        node("high"),
        node("other"),
        wires="a.out>switch.value switch.low>low._should_flow switch.high>high._should_flow "
        "switch.other>other._should_flow",
    )
    run = run_to_end(of, {"switch": [("emit", {"high": True})]})
    cases = [run.status(name) for name in ("low", "high", "other")]
    assert cases == ["skipped: flow_closed", "completed", "skipped: flow_closed"]
    run = run_to_end(of, {"a": SILENT})
    assert {run.status(name) for name in ("low", "high", "other")} == {"skipped: flow_closed"}


def test_statement_58_a_root_that_gives_nothing_does_not_block_a_join():
    of = program(node("t"), node("a"), node("join", "x", "y!"), wires="t.out>join.x a.out>join.y")
    run = run_to_end(of, {"t": SILENT})
    assert (run.status("join"), run.bag("join")) == ("completed", {"y": "a"})
    assert run.state.outcome().kind == "completed"


def test_statement_59_a_node_outside_the_run_absorbs_without_a_trace():
    of = program(node("a"), node("in_", "x!"), node("out_", "x!"), wires="a.out>in_.x a.out>out_.x")
    run = run_to_end(of, {"a": gives([1])}, Selection(targets=("in_",)))
    assert run.statuses() == {"a": "completed", "in_": "completed"}
    assert run.state.outcome().kind == "completed"
    assert {getattr(event, "node", None) for event in run.events} == {None, "a", "in_"}


def test_statement_60_a_run_in_which_something_runs_has_no_outcome_and_a_stuck_one_has_not_completed():
    of = program(node("a"), node("b", "x!", "y"), node("c", "x!"), wires="a.out>b.x c.out>b.y b.out>c.x")
    run = begin(of)
    assert run.state.outcome() is None
    run.apply(ev.NodeKicked("a"))
    run.apply(ev.NodeStarted("a"))
    run.apply(ev.PortEmitted("a", (), 0, "out", 1))
    assert run.state.outcome() is None
    run.apply(ev.NodeCompleted("a"))
    outcome = run.state.outcome()
    assert outcome.kind == "stuck"
    assert outcome.error.splitlines()[1:] == ["  b holds x; still empty: y (from c.out)"]


def test_statement_60_a_failure_is_told_beside_the_stuck_firings():
    of = program(node("a"), node("b", "x", "y"), node("c", "x!"), wires="a.out>b.x c.out>b.y b.out>c.x")
    outcome = run_to_end(of, {"a": FAIL}).state.outcome()
    assert outcome.kind == "stuck"
    assert outcome.error.splitlines()[0] == "a failed: boom"
    assert outcome.error.splitlines()[-1] == "  b holds x (closed); still empty: y (from c.out)"


def test_statement_61_the_port_that_was_not_chosen_closes():
    of = program(
        node("form", out="approved rejected"),
        node("yes"),
        node("no"),
        wires="form.approved>yes._should_flow form.rejected>no._should_flow",
    )
    run = run_to_end(of, {"form": [("emit", {"rejected": True})]})
    assert (run.status("yes"), run.status("no")) == ("skipped: flow_closed", "completed")


@pytest.mark.parametrize("body", [None, SILENT, FAIL])
def test_statement_64_a_chain_of_5000_nodes_needs_no_recursion(body):
    count = 5_000
    nodes = [node("n0"), *(node(f"n{i}", "x!") for i in range(1, count))]
    wires = " ".join(f"n{i}.out>n{i + 1}.x" for i in range(count - 1))
    run = run_to_end(program(*nodes, wires=wires), {} if body is None else {"n0": body})
    last = run.status(f"n{count - 1}")
    assert last == ("completed" if body is None else "skipped: required_input_closed")
    assert run.state.outcome().kind == ("failed" if body is FAIL else "completed")


def test_statement_65_what_is_due_comes_in_source_order():
    names = ["z", "m", "a", "q"]
    of = program(
        *(node(name, "x!") for name in names),
        node("root", out=" ".join(names)),
        wires=" ".join(f"root.{name}>{name}.x" for name in names),
    )
    run = begin(of)
    run.apply(ev.NodeKicked("root"))
    run.apply(ev.NodeStarted("root"))
    for call, name in enumerate(reversed(names)):
        run.apply(ev.PortEmitted("root", (), call, name, 1))
    assert [due.node for due in run.state.due()] == names
