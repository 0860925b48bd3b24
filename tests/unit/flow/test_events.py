"""Events and their JSON form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.flow import events as ev
from weft.lang.graph import MISSING

texts = st.text(st.characters(exclude_categories=("Cs",)))
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
frames = st.lists(st.integers() | names, max_size=3).map(tuple)
calls = st.integers(0, 99)
errors = st.fixed_dictionaries({"message": texts, "type": names}, optional={"traceback": texts})
waits = st.lists(
    st.fixed_dictionaries({"token": names, "kind": names, "spec": objects}, optional={"due": names}), max_size=3
).map(tuple)

EVENTS = {
    ev.ExecutionStarted: (names, names, texts, st.none() | objects),
    ev.NodeKicked: (names, frames),
    ev.NodeStarted: (names, frames),
    ev.NodeResumed: (names, frames, st.none() | names),
    ev.PortEmitted: (names, frames, calls, names, values),
    ev.PortClosed: (names, frames, calls, names),
    ev.RunOutput: (names, frames, calls, texts, st.just(MISSING) | values, st.none() | errors),
    ev.SuspensionRegistered: (names, frames, calls, waits, st.sampled_from(["first", "all"])),
    ev.NodeSuspended: (names, frames, names),
    ev.SuspensionResolved: (
        names,
        frames,
        calls,
        names,
        st.just(MISSING) | values,
        names,
        st.booleans(),
        st.booleans(),
    ),
    ev.NodeRetryScheduled: (names, frames, calls, names, names, errors),
    ev.NodeCompleted: (names, frames),
    ev.NodeFailed: (names, frames, errors),
    ev.NodeSkipped: (names, frames, names),
    ev.NodeCancelled: (names, frames, texts, st.none() | objects),
    ev.ExecutionTagged: (names, frames, st.lists(names).map(tuple)),
    ev.LogLine: (names, frames, names, texts),
    ev.CostReported: (names, frames, names, st.none() | st.just(0.0) | st.floats(0, 1e9)),
    ev.ExecutionCompleted: (),
    ev.ExecutionFailed: (texts,),
    ev.ExecutionCancelled: (texts, st.none() | objects),
}


def test_every_kind_has_a_class_an_encoder_and_a_test():
    assert set(ev.CLASSES.values()) == set(EVENTS) == set(ev._ENCODERS)
    assert len(ev.CLASSES) == len(EVENTS)


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.kind)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_an_event_survives_encoding(cls, data):
    event = cls(*(data.draw(part) for part in EVENTS[cls]))
    text = ev.encode(event)
    decoded = ev.decode(json.loads(text))
    assert type(decoded) is cls
    assert repr(decoded) == repr(event), "as texts, so that true and 1 are told apart"
    assert text.startswith(f'{{"kind":"{cls.kind}"')
    assert ev.encode(decoded) == text
    assert json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) == text, "compact"


def test_empty_parts_are_left_out():
    assert ev.encode(ev.NodeStarted("a")) == '{"kind":"node_started","node":"a"}'
    assert ev.encode(ev.NodeStarted("a", (0, "site"))) == ('{"kind":"node_started","node":"a","frames":[0,"site"]}')
    assert ev.encode(ev.CostReported("a", (), "s")) == '{"kind":"cost_reported","node":"a","service":"s"}'
    assert ev.encode(ev.ExecutionTagged(None, (), ("t",))) == '{"kind":"execution_tagged","tags":["t"]}'
    assert ev.decode({"kind": "execution_tagged", "tags": ["t"]}) == ev.ExecutionTagged(None, (), ("t",))


def test_null_and_nothing_are_two_outcomes_of_a_call():
    null = ev.RunOutput("a", (), 0, "n", None)
    failed = ev.RunOutput("a", (), 0, "n", error={"message": "m", "type": "T"})
    assert '"value":null' in ev.encode(null)
    assert "value" not in ev.encode(failed)


def test_a_text_at_hand_is_taken_as_it_is():
    event = ev.PortEmitted("é", (), 2, "out", [1], text="[1]")
    assert ev.encode(event) == '{"kind":"port_emitted","node":"é","call":2,"port":"out","value":[1]}'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_what_is_not_json_is_refused(value):
    with pytest.raises(ValueError, match="JSON"):
        ev.encode(ev.PortEmitted("a", (), 0, "out", value))


@pytest.mark.parametrize("obj", [{}, {"kind": "node_dreamt"}, {"kind": ["x"]}])
def test_an_unknown_kind_is_named(obj):
    with pytest.raises(ValueError, match="no event is of the kind"):
        ev.decode(obj)


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match=r"node_started.*'mood'"):
        ev.decode({"kind": "node_started", "node": "a", "mood": "good"})
