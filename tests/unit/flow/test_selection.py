"""Which part of a program runs, what it is given, and what is refused before it starts."""

from __future__ import annotations

import json

import pytest

from tests.unit.flow.programs import inp, node, program, run_to_end
from weft.errors import SelectionRefused
from weft.flow.selection import Selection, select

CHAIN = program(node("a"), node("b", "x!"), node("c", "x!"), wires="a.out>b.x b.out>c.x")
JOIN = program(
    node("a"),
    node("b"),
    node("c", "x!", "y!"),
    node("d", "x!"),
    node("e", "x!"),
    wires="a.out>c.x b.out>c.y c.out>d.x b.out>e.x",
)


def chosen(of, **parts):
    return " ".join(select(of, Selection(**parts)).nodes)


def refusal(of, **parts) -> tuple[str, str]:
    with pytest.raises(SelectionRefused) as caught:
        select(of, Selection(**parts))
    return caught.value.message, caught.value.hint


def test_nothing_chosen_is_the_whole_program():
    assert chosen(JOIN) == "a b c d e"


def test_a_target_brings_what_feeds_it():
    assert chosen(JOIN, targets=("c",)) == "a b c"
    assert chosen(JOIN, targets=("e", "a")) == "a b e"


def test_a_target_brings_what_its_gates_need():
    of = program(node("g"), node("a"), node("b", "x!"), wires="a.out>b.x g.out>b._should_flow")
    assert chosen(of, targets=("b",)) == "g a b"
    assert run_to_end(of, {"g": [("emit", {"out": False})]}, Selection(targets=("b",))).status("b") == (
        "skipped: did_not_flow"
    )


def test_before_is_what_a_node_needs_without_it():
    assert chosen(JOIN, before=("d",)) == "a b c"
    assert chosen(JOIN, before=("c",), targets=("e",)) == "a b e"


def test_from_starts_at_a_node_and_takes_everything_downstream():
    run = run_to_end(
        CHAIN, {"b": lambda bag: [("emit", {"out": bag["x"] + 1})]}, Selection(from_values={"b": {"x": 41}})
    )
    assert run.statuses() == {"b": "completed", "c": "completed"}
    assert run.bag("c") == {"x": 42}


def test_from_is_narrowed_by_a_target_and_by_before():
    assert chosen(JOIN, from_values={"b": {}}, targets=("e",)) == "b e"
    assert chosen(CHAIN, from_values={"a": {}}, before=("c",)) == "a b"


def test_handed_values_fill_gates_literals_and_null():
    of = program(
        node("g"),
        node("a", "x!", inp("y", literal=1), inp("z", default=2)),
        wires="g.out>a.x g.out>a._should_flow",
    )
    handed = {"_should_flow": 0, "x": None, "y": 10}
    run = run_to_end(of, selection=Selection(from_values={"a": handed}))
    assert (run.status("a"), run.bag("a")) == ("completed", {"x": None, "y": 10, "z": 2})
    run = run_to_end(of, selection=Selection(from_values={"a": handed | {"_should_flow": False}}))
    assert run.status("a") == "skipped: did_not_flow"


def test_handed_values_fill_gates_that_stand_nowhere_and_one_of_groups():
    of = program(node("a", "x", inp("y", default=1), one_of=(("x", "y"),)))
    assert run_to_end(of).status("a") == "skipped: one_of_group_closed"
    handed = {"y": 2}
    assert run_to_end(of, selection=Selection(from_values={"a": handed})).status("a") == "completed"
    for gate, reason in (("_should_flow", "did_not_flow"), ("_should_not_flow", "did_flow")):
        closing = handed | {gate: gate == "_should_not_flow"}
        run = run_to_end(of, selection=Selection(from_values={"a": closing}))
        assert run.status("a") == f"skipped: {reason}"


def test_an_optional_wire_from_outside_is_closed_and_an_inverted_gate_from_outside_is_absent():
    of = program(node("g"), node("a", "x!", inp("y", default=1)), wires="g.out>a.x g.out>a.y g.out>a._should_not_flow")
    run = run_to_end(of, selection=Selection(from_values={"a": {"x": 0}}))
    assert (run.status("a"), run.bag("a")) == ("completed", {"x": 0})


def test_a_real_value_beats_a_handed_one_and_a_handed_one_a_closure():
    selection = Selection(from_values={"a": {}, "b": {"x": "handed"}})
    run = run_to_end(CHAIN, selection=selection)
    assert run.bag("b") == {"x": "a"}
    for silent in ([], [("fail", "boom")]):
        run = run_to_end(CHAIN, {"a": silent}, selection)
        assert (run.status("b"), run.bag("b")) == ("completed", {"x": "handed"})


def test_emit_stands_for_a_node_that_does_not_run():
    of = program(
        node("a"),
        node("b", "x!", out="p q"),
        node("c", "x!"),
        node("d", "x!"),
        wires="a.out>b.x b.p>c.x b.q>d.x",
    )
    run = run_to_end(of, selection=Selection(emits={"b": {"p": None}}))
    assert run.statuses() == {"a": "completed", "c": "completed", "d": "skipped: required_input_closed"}
    assert run.bag("c") == {"x": None}
    assert run.state.outcome().kind == "completed"


def test_emit_makes_what_feeds_it_needless():
    assert chosen(CHAIN, targets=("c",), emits={"b": {"out": 1}}) == "c"
    assert chosen(JOIN, from_values={"a": {}}, emits={"b": {"out": 1}}) == "a c d"


def test_emit_between_a_start_and_what_is_downstream_of_it():
    selection = Selection(from_values={"a": {}}, emits={"b": {"out": 1}})
    run = run_to_end(CHAIN, selection=selection)
    assert run.statuses() == {"a": "completed", "c": "completed"}
    assert run.bag("c") == {"x": 1}


def test_a_run_from_given_emissions_alone_starts():
    run = run_to_end(CHAIN, selection=Selection(targets=("c",), emits={"b": {"out": 5}}))
    assert (run.status("c"), run.bag("c")) == ("completed", {"x": 5})


def test_an_emission_beats_a_handed_value():
    selection = Selection(from_values={"c": {"x": "handed"}}, emits={"b": {"out": "emitted"}})
    assert run_to_end(CHAIN, selection=selection).bag("c") == {"x": "emitted"}
    selection = Selection(from_values={"c": {"x": "handed"}}, emits={"b": {}})
    assert run_to_end(CHAIN, selection=selection).bag("c") == {"x": "handed"}


def test_a_needed_input_that_nothing_supplies_is_refused():
    message, hint = refusal(JOIN, from_values={"a": {}})
    assert message == "c needs a value on y, but b, which feeds it, is left out of this run"
    assert hint == ("""Hand it over with --from c='{"y": …}', or say what b gives with --emit b='{"out": …}'.""")
    assert chosen(JOIN, from_values={"a": {}, "c": {"y": 1}}) == "a c d"
    assert "c needs a value on y" in refusal(JOIN, from_values={"c": {"x": 1}})[0]


def test_a_required_when_wired_input_and_a_gate_are_needed_too():
    of = program(
        node("g"),
        node("a", inp("x", required_when_wired=True)),
        node("b"),
        wires="g.out>a.x g.out>b._should_flow",
    )
    assert "a needs a value on x" in refusal(of, from_values={"a": {}})[0]
    message, hint = refusal(of, from_values={"b": {}})
    assert "b needs a value on _should_flow" in message
    assert """--from b='{"_should_flow": …}'""" in hint


def test_the_last_of_a_one_of_group_is_needed():
    of = program(node("g"), node("a", "x", "y", inp("z", literal=1), one_of=(("x", "y"),)), wires="g.out>a.x")
    assert "a needs a value on x (one of x, y)" in refusal(of, from_values={"a": {}})[0]
    assert chosen(of, from_values={"a": {"y": 1}}) == "a"


def test_a_start_of_which_every_input_would_be_closed_is_refused():
    of = program(node("g"), node("a", "x", "y"), node("b", "x", inp("y", default=1)), wires="g.out>a.x g.out>b.x")
    assert "a needs a value on x" in refusal(of, from_values={"a": {}})[0]
    assert chosen(of, from_values={"b": {}}) == "b"


def test_before_that_cuts_off_a_target_is_refused_by_name():
    message, _ = refusal(CHAIN, targets=("c",), before=("b",))
    assert message == "c needs a value on x, but b, which feeds it, is left out of this run by --before"


def test_before_a_root_leaves_nothing():
    assert refusal(CHAIN, before=("a",))[0] == "nothing is left to run before a"


def test_a_target_that_is_not_downstream_of_the_start_is_refused():
    assert "d is not downstream of e" in refusal(JOIN, from_values={"e": {"x": 1}}, targets=("d",))[0]
    message, hint = refusal(JOIN, from_values={"b": {}, "a": {}}, targets=("e",))
    assert "a does not lead to e" in message
    assert "--from a" in hint


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"targets": ("cc",)}, ["--target cc", "no node cc", "mean c?"]),
        ({"before": ("nowhere",)}, ["--before nowhere", "no node nowhere", "There are: a, b, c."]),
        ({"from_values": {"d": {}}}, ["--from d", "no node d"]),
        ({"emits": {"d": {}}}, ["--emit d", "no node d"]),
        ({"from_values": {"b": {"out": 1}}}, ["--from b", "b has no input out", "x"]),
        ({"from_values": {"b": {"should_flow": 1}}}, ["no input should_flow", "mean _should_flow?"]),
        ({"emits": {"b": {"x": 1}}}, ["--emit b", "b has no output x", "out"]),
        ({"targets": ("b",), "emits": {"b": {}}}, ["b stands both in --target and in --emit"]),
        ({"from_values": {"b": {"x": 1}}, "emits": {"b": {}}}, ["b stands both in --from and in --emit"]),
        ({"targets": ("b",), "before": ("b",)}, ["b stands both in --target and in --before"]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(parts, words):
    told = " | ".join(refusal(CHAIN, **parts))
    for word in words:
        assert word in told


def test_an_output_of_a_node_without_outputs():
    assert refusal(program(node("a", out="")), emits={"a": {"x": 1}}) == (
        "--emit a: a has no output x",
        "It has none.",
    )


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(("a", "b"), ("c",), {"d": {"x": [None, {"k": 1.5}]}, "e": {}}, {"f": {"out": False}}),
    ],
)
def test_a_selection_survives_json(selection):
    assert Selection.from_json(json.loads(json.dumps(selection.to_json()))) == selection


def test_json_of_nothing_is_empty():
    assert Selection().to_json() == {}
