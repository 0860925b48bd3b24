"""What may arrive at a node and what it may emit."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import EmissionError
from weft.lang.graph import FLOW_GATE, Domain, InputPort, Node, OutputPort
from weft.lang.storable import LARGEST_INTEGER, SMALLEST_INTEGER
from weft.nodes.firing.ports import NodePorts, encoded

NODE = Node(
    "site.fetch",
    "Fetch",
    inputs=(
        InputPort("url", "String", required=True, wired=True),
        InputPort("tries", "Number", default=3, domain=Domain(minimum=1, whole=True)),
        InputPort("method", "String | Null", domain=Domain(options=("GET", "POST"))),
        InputPort("any", "T"),
        InputPort(FLOW_GATE, "Boolean", wired=True),
    ),
    outputs=(OutputPort("status", "Number", True), OutputPort("body", "JsonDict | String")),
)
PORTS = NodePorts.of(NODE)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(SMALLEST_INTEGER, LARGEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")), inner)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "values",
    [
        {"url": "u", "tries": 3, "method": "GET", "any": [1]},
        {"url": "u", "method": None},
        {"url": "u", "tries": 1.0},
        {},
        {"url": "u", FLOW_GATE: "anything at all"},
    ],
)
def test_what_fits_arrives(values: dict[str, Any]) -> None:
    assert PORTS.misfit(values) is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"url": 1}, ["`url` of `site.fetch`", "a Number, not a String"]),
        ({"url": None}, ["`url`", "null, not a String"]),
        ({"url": "u", "tries": 0}, ["`tries`", "below 1"]),
        ({"url": "u", "tries": 1.5}, ["`tries`", "not a whole number"]),
        ({"url": "u", "tries": True}, ["`tries`", "a Boolean, not a Number"]),
        ({"url": "u", "method": "PUT"}, ["`method`", "none of"]),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, Any], words: list[str]) -> None:
    reason = PORTS.misfit(values)
    assert reason is not None
    for word in words:
        assert word in reason


def test_an_emission_carries_value_and_text() -> None:
    emissions = PORTS.checked_output({"body": {"é": [1, None]}, "status": 200}, ())
    assert emissions == [("body", {"é": [1, None]}, '{"é":[1,null]}'), ("status", 200, "200")]


def test_what_goes_downstream_is_not_what_the_body_holds() -> None:
    body = {"list": [1]}
    [emission] = PORTS.checked_output({"body": body}, ())
    body["list"].append(2)
    assert emission.value == {"list": [1]}


@pytest.mark.parametrize(
    ("values", "touched", "words"),
    [
        ({"statsu": 1}, (), "`site.fetch` has no output `statsu`; did you mean `status`?"),
        ({"whatever": 1}, (), "it has `status`, `body`"),
        ({"status": 1}, ("status",), "`status` of `site.fetch` was emitted or closed before"),
        ({"status": "1"}, (), "`status` of `site.fetch` does not take this: it is a String, not a Number"),
        ({"body": 1}, (), "a Number, not a JsonDict | String"),
        ({"status": math.inf}, (), "`site.fetch.status` cannot be stored: it is Infinity"),
        ({"body": {"a": {"b": "\0"}}}, (), "`a.b` holds the character U+0000"),
        ({"body": (1,)}, (), "Python tuple"),
    ],
)
def test_what_may_not_be_emitted(values: dict[str, Any], touched: tuple[str, ...], words: str) -> None:
    with pytest.raises(EmissionError) as caught:
        PORTS.checked_output(values, touched)
    assert words in caught.value.message


def test_a_node_without_outputs_says_so() -> None:
    with pytest.raises(EmissionError, match="it has none at all"):
        NodePorts.of(Node("show", "Debug")).output("value")


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
def test_the_limit_counts_bytes_of_the_text(character: str) -> None:
    text = character * 10
    size = len(text.encode()) + 2
    assert encoded(text, size) == (text, f'"{text}"')
    with pytest.raises(ValueError, match=f"it has {size} bytes, and {size - 1} are allowed"):
        encoded(text, size - 1)


@given(json_values)
def test_what_is_encoded_is_read_back_the_same(value: Any) -> None:
    seen, text = encoded(value, 10**9)
    assert seen == value
    assert type(seen) is type(value)
    back = json.loads(text)
    assert back == value
    assert type(back) is type(value)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        2**63,
        -(2**63) - 1,
        "\0",
        "\ud800",
        {"\0": 1},
        {1: 1},
        (1,),
        {1},
        b"x",
        pytest.param(object(), id="an object"),
        [[float("nan")]],
    ],
    ids=lambda value: type(value).__name__ if type(value) is object else repr(value),
)
def test_what_cannot_be_stored(value: Any) -> None:
    with pytest.raises(ValueError):
        encoded(value)


def test_nesting_is_limited() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert encoded(value)[0] == value
    with pytest.raises(ValueError, match="deeper than 200"):
        encoded([value])
