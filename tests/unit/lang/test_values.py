"""Values: their types, whether they fit, how they are cast, and what can be stored."""

from __future__ import annotations

import datetime
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.lang.graph import Domain
from weft.lang.types import MAX_NESTING, assignable, parse_type
from weft.lang.values import (
    CastError,
    cast_allowed,
    cast_literal,
    convert,
    fitter,
    infer,
    misfit,
    outside,
    parse_json,
    same,
    unstorable,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]))
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="ascii", min_codepoint=32)), inner, max_size=4)
    ),
    max_leaves=12,
)
TYPES = [
    "String",
    "Number",
    "Boolean",
    "Null",
    "JsonDict",
    "List[Number]",
    "List[String | Null]",
    "List[List[Number] | List[String]]",
    "Dict[String, Number]",
    "Dict[String, List[Boolean]]",
    "String | Number | Null",
    "List[JsonDict]",
    "T",
    "List[T]",
    "MustOverride",
]


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# --- types of values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, "Null"),
        (True, "Boolean"),
        (0, "Number"),
        (-0.0, "Number"),
        (2**63 - 1, "Number"),
        ("", "String"),
        ([], "List[Empty]"),
        ({}, "Dict[String, Empty]"),
        ([1, 2.5, "a"], "List[Number | String]"),
        ([[], [1]], "List[List[Empty] | List[Number]]"),
        ({"a": 1, "b": True}, "Dict[String, Number | Boolean]"),
    ],
)
def test_the_type_of_a_value(value: Any, type_: str) -> None:
    assert infer(value) == parse_type(type_)


def test_statement_03_a_boolean_is_no_number() -> None:
    assert infer(True) == parse_type("Boolean")
    assert misfit(True, parse_type("Number")) == "a Boolean, not a Number"
    assert misfit(1, parse_type("Boolean")) == "a Number, not a Boolean"
    assert misfit([1, False], parse_type("List[Number]")) == "[1] is a Boolean, not a Number"
    assert not same(True, 1) and not same([0], [False])


def test_what_is_no_json_value_has_no_type() -> None:
    with pytest.raises(ValueError, match="a Python set is no JSON value"):
        infer({"a": {1, 2}})
    with pytest.raises(ValueError, match="200 levels"):
        infer(nested(MAX_NESTING + 1))


@given(JSON, st.sampled_from(TYPES))
def test_a_value_fits_exactly_the_types_that_its_own_type_fits(value: Any, text: str) -> None:
    type_ = parse_type(text)
    assert (misfit(value, type_) is None) == assignable(infer(value), type_)
    assert fitter(text)(value) == misfit(value, type_)


@given(JSON)
def test_a_value_fits_its_own_type_and_comes_back_from_json(value: Any) -> None:
    assert misfit(value, infer(value)) is None
    assert unstorable(value) is None
    assert same(parse_json(json.dumps(value)), value)


@pytest.mark.parametrize(
    ("value", "type_", "reason"),
    [
        (1, "String", "a Number, not a String"),
        (None, "String", "null, not a String"),
        ([1, "a"], "List[Number]", "[1] is a String, not a Number"),
        ({"a": {"b c": None}}, "Dict[String, Dict[String, Number]]", 'a["b c"] is null, not a Number'),
        ({"messages": [{}, {"role": 5}]}, "Dict[String, List[Dict[String, String]]]", "messages[1].role is a Number"),
        ([1], "String | Null", "a List, not a String | Null"),
        (datetime.date(2026, 1, 1), "String", "a Python date, not a String"),
        (5, "Empty", "a Number, not the item of an empty list"),
        ({}, "Dict[Number, Number]", "a Dict, not a Dict[Number, Number]"),
    ],
)
def test_a_misfit_says_where_and_what(value: Any, type_: str, reason: str) -> None:
    said = misfit(value, parse_type(type_))
    assert said is not None and said.startswith(reason)


# --- casting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "type_", "result"),
    [
        ("3", "Number", 3),
        (" 3.5\n", "Number", 3.5),
        ("-2", "Number", -2),
        ("1e3", "Number", 1000.0),
        ("TRUE", "Boolean", True),
        ("0", "Boolean", False),
        (1, "Boolean", True),
        (0.0, "Boolean", False),
        (True, "Number", 1),
        (3, "String", "3"),
        (2.5, "String", "2.5"),
        (False, "String", "false"),
        ('["1", 2]', "List[Number]", [1, 2]),
        ('{"a": "1"}', "Dict[String, Number]", {"a": 1}),
        ('{"a": [null]}', "JsonDict", {"a": [None]}),
        (["1", True], "List[Number]", [1, 1]),
        ({"a": 1}, "Dict[String, String]", {"a": "1"}),
        ("x", "String | Number", "x"),
        ("7", "Number | Null", 7),
        ("anything", "T", "anything"),
        ([1, "a"], "List[T]", [1, "a"]),
    ],
)
def test_a_written_value_becomes_the_one_thing_that_it_can_mean(value: Any, type_: str, result: Any) -> None:
    assert same(cast_literal(value, parse_type(type_)), result)
    assert same(convert(value, parse_type(type_)), result)


@pytest.mark.parametrize(
    ("value", "type_", "says"),
    [
        ("abc", "Number", '`"abc"` cannot become a Number'),
        ("1_000", "Number", "cannot become"),
        ("٣", "Number", "cannot become"),
        ("0x10", "Number", "cannot become"),
        ("", "Number", "cannot become"),
        ("NaN", "Number", "cannot become"),
        ("1e999", "Number", "too large"),
        ("9" * 30, "Number", "too large"),
        ("9" * 10_000, "Number", "too large"),
        ("yes", "Boolean", "cannot become a Boolean"),
        (2, "Boolean", "`2` cannot become a Boolean"),
        (None, "Number", "null cannot become a Number"),
        ("[1, 2", "List[Number]", "line 1, column"),
        ("{}", "List[Number]", "a Dict cannot become a List[Number]"),
        ('{"a": NaN}', "JsonDict", "`NaN` is no JSON value"),
        ('{"a": 1, "a": 2}', "JsonDict", "`a` stands there twice"),
        ("[" * 5000 + "]" * 5000, "List[T]", "200 levels"),
        ("[" + "9" * 5000 + "]", "List[Number]", "64 bits"),
        ([1, "b"], "List[Number]", '`"b"` at `[1]` cannot become a Number'),
        ({"a": {"b": [None]}}, "Dict[String, Dict[String, List[Number]]]", "null at `a.b[0]`"),
        ("1", "Number | Boolean", "several ways as a Number | Boolean: 1, true"),
        ([1], "Number | Null", "a List cannot become a Number | Null"),
    ],
)
def test_what_cannot_be_cast_says_why_and_where(value: Any, type_: str, says: str) -> None:
    for cast in (cast_literal, convert):
        with pytest.raises(CastError) as raised:
            cast(value, parse_type(type_))
        assert says in str(raised.value)


@pytest.mark.parametrize(("value", "text"), [([1, "é"], '[1,"é"]'), ({"a": None}, '{"a":null}'), (None, "null")])
def test_only_the_cast_node_makes_text_of_anything(value: Any, text: str) -> None:
    assert convert(value, parse_type("String")) == text
    with pytest.raises(CastError):
        cast_literal(value, parse_type("String"))


def test_values_of_the_deepest_types() -> None:
    type_ = parse_type("List[" * MAX_NESTING + "Number" + " | Null]" * MAX_NESTING)
    value: Any = 1
    text: Any = "1"
    for _ in range(MAX_NESTING):
        value, text = [value], [text]
    assert misfit(value, type_) is None and assignable(infer(value), type_)
    assert misfit(text, type_) is not None
    assert convert(text, type_) == value


def test_members_of_a_union_that_agree_are_one_reading() -> None:
    assert cast_literal("[1]", parse_type("List[Number] | List[Number | Null]")) == [1]


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("String", "String", True),
        ("String", "Number", True),
        ("String", "Boolean", True),
        ("String", "JsonDict", True),
        ("String", "List[Number]", True),
        ("String", "Dict[String, Number]", True),
        ("String", "Null", False),
        ("Number", "String", True),
        ("List[Number]", "String", True),
        ("Null", "String", True),
        ("Number", "Boolean", True),
        ("Boolean", "Number", True),
        ("Number", "Null", False),
        ("List[String]", "List[Number]", True),
        ("List[List[Number]]", "List[Number]", False),
        ("Dict[String, String]", "Dict[String, Number]", True),
        ("JsonDict", "Number", False),
        ("JsonDict", "List[Number]", False),
        ("String | Null", "Number", True),
        ("JsonDict", "Number | String", True),
        ("Null | JsonDict", "Number", False),
        ("T", "Number", True),
    ],
)
def test_which_casts_there_are(source: str, target: str, allowed: bool) -> None:
    assert cast_allowed(parse_type(source), parse_type(target)) is allowed


@given(st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_what_is_assignable_may_be_cast(source: str, target: str) -> None:
    if assignable(parse_type(source), parse_type(target)):
        assert cast_allowed(parse_type(source), parse_type(target))


@given(JSON, st.sampled_from(TYPES))
def test_a_cast_gives_a_value_of_the_type_or_says_why_not(value: Any, text: str) -> None:
    type_ = parse_type(text)
    for cast in (cast_literal, convert):
        try:
            result = cast(value, type_)
        except CastError as error:
            assert str(error)
        else:
            assert misfit(result, type_) is None
            assert unstorable(result) is None


# --- domains ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "domain", "reason"),
    [
        (5, Domain(minimum=1, maximum=10), None),
        (1, Domain(minimum=1), None),
        (0, Domain(minimum=1), "0 is below 1"),
        (2.5, Domain(maximum=2), "2.5 is above 2"),
        (2.5, Domain(whole=True), "2.5 is not a whole number"),
        (2.0, Domain(whole=True), None),
        (0.3, Domain(minimum=0, maximum=1), None),
        ("a", Domain(options=("a", "b")), None),
        ("c", Domain(options=("a", "b")), '`"c"` is none of `"a"`, `"b"`'),
        (["a", "c"], Domain(options=("a", "b")), '`"c"` is none of'),
        ([], Domain(options=("a", "b")), None),
        (True, Domain(options=(1, 2)), "`true` is none of"),
        (None, Domain(minimum=1, options=("a",)), None),
        ("text", Domain(minimum=1), None),
        (math.nan, Domain(minimum=1), "nan is below 1"),
    ],
)
def test_a_domain_bounds_numbers_and_lists_options(value: Any, domain: Domain, reason: str | None) -> None:
    said = outside(value, domain)
    assert said is None if reason is None else said is not None and said.startswith(reason)


# --- what can be stored -----------------------------------------------------------------------------------


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "it is NaN"),
        ([1, math.inf], "`[1]` is Infinity"),
        ({"a": {"b": -math.inf}}, "`a.b` is -Infinity"),
        ("a\0b", "it holds the character U+0000"),
        ({"a\0": 1}, '`["a\\u0000"]` holds the character U+0000'),
        (["\ud800"], "`[0]` holds half of a surrogate pair"),
        (2**63, "it is an integer beyond signed 64 bits"),
        (-(2**63) - 1, "it is an integer beyond"),
        ((1, 2), "it is a Python tuple, which is no JSON value; make it a list"),
        ({"when": datetime.date(2026, 1, 1)}, "`when` is a Python date"),
        ({1: "a"}, "it has a Python int as a key"),
        ({"a": {None: 1}}, "`a` has a Python NoneType as a key"),
        (b"bytes", "it is a Python bytes"),
    ],
)
def test_what_cannot_be_stored_says_which_part_and_why(value: Any, reason: str) -> None:
    said = unstorable(value)
    assert said is not None and said.startswith(reason)


@pytest.mark.parametrize(
    ("good", "bad"), [(1, 2**63), (-1, -(2**63) - 1), (0.5, math.nan), ("a", "\0"), ("é", "\udfff"), (True, {1})]
)
def test_the_one_bad_item_of_a_long_list_is_found(good: Any, bad: Any) -> None:
    assert unstorable([good] * 100) is None
    said = unstorable([good] * 50 + [bad] + [good] * 49)
    assert said is not None and said.startswith("`[50]`")


@pytest.mark.parametrize(("good", "bad", "type_"), [(1, True, "Number"), ("a", 1, "String"), (True, 1, "Boolean")])
def test_the_one_item_of_another_type_is_found(good: Any, bad: Any, type_: str) -> None:
    check = fitter(f"List[{type_}]")
    assert check([good] * 100) is None
    said = check([good] * 50 + [bad] + [good] * 49)
    assert said is not None and said.startswith("[50] is ")
    assert fitter("List[String]")([Colour.RED]) is None


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1, -0.0, 5e-324, "", "😀", Colour.RED, nested(MAX_NESTING)])
def test_what_is_at_the_edge_can_be_stored(value: Any) -> None:
    assert unstorable(value) is None


def test_a_value_that_nests_too_deep_or_holds_itself_cannot_be_stored() -> None:
    assert unstorable(nested(MAX_NESTING + 1)) == "it nests deeper than 200 levels"
    assert unstorable(nested(100_000)) == "it nests deeper than 200 levels"
    itself: list[Any] = []
    itself.append(itself)
    assert unstorable(itself) == "it nests deeper than 200 levels"


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', '{"a": 1, "a": 1}', "1e999", "[1,]", "'a'", ""]
)
def test_statement_35_json_is_read_strictly(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
