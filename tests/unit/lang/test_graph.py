"""The compiled program as JSON, there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.lang.graph import FORMAT, MISSING, Domain, Edge, InputPort, Node, OutputPort, Program

NAMES = st.text("abcXYZ_é", min_size=1, max_size=6)
VALUES = st.sampled_from([MISSING, None, False, 0, -0.0, "", "# ü", [], [1, None], {"a": {"b": [True]}}])
DOMAINS = st.builds(
    Domain,
    st.none() | st.integers(-5, 5),
    st.none() | st.floats(0, 9),
    st.booleans(),
    st.none() | st.lists(st.text(max_size=3), max_size=3).map(tuple),
)
INPUTS = st.builds(
    InputPort,
    NAMES,
    st.sampled_from(["String", "List[Number | Null]", "T_Auto"]),
    *[st.booleans()] * 5,
    literal=VALUES,
    default=VALUES,
    domain=st.none() | DOMAINS,
)
NODES = st.builds(
    Node,
    NAMES,
    NAMES,
    st.lists(INPUTS, max_size=3).map(tuple),
    st.lists(st.builds(OutputPort, NAMES, NAMES, st.booleans()), max_size=3).map(tuple),
    st.none() | st.text(max_size=5),
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(st.lists(NAMES, max_size=2).map(tuple), max_size=2).map(tuple),
)
EDGES = st.builds(Edge, NAMES, NAMES, NAMES, NAMES, st.lists(NAMES, max_size=2).map(tuple))
PROGRAMS = st.builds(Program, NAMES, st.lists(NODES, max_size=4).map(tuple), st.lists(EDGES, max_size=4).map(tuple))


@given(PROGRAMS)
def test_a_program_comes_back_from_its_text_with_its_hash(program: Program) -> None:
    again = Program.from_text(program.text())
    assert again == program
    assert again.hash == program.hash
    assert Program(again.entry, again.nodes, again.edges).text() == program.text()


def test_null_is_not_the_same_as_no_value() -> None:
    with_null = Program("x", (Node("a", "A", (InputPort("p", "T", literal=None),)),), ())
    without = Program("x", (Node("a", "A", (InputPort("p", "T"),)),), ())
    assert with_null.hash != without.hash
    assert Program.from_text(with_null.text()).nodes[0].inputs[0].literal is None
    assert Program.from_text(without.text()).nodes[0].inputs[0].literal is MISSING


def test_a_program_of_a_newer_format_is_refused_by_its_number() -> None:
    text = json.dumps({"format": FORMAT + 1, "entry": "x", "nodes": [], "edges": []})
    with pytest.raises(ValueError, match=f"format {FORMAT + 1} is newer"):
        Program.from_text(text)
