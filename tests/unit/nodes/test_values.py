"""Value bags: what is read with which type, and what the errors say."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from weft import InputError, ValueBag
from weft.lang.graph import InputPort

PORTS = (
    InputPort("name", "String", required=True),
    InputPort("count", "Number"),
    InputPort("absent", "String"),
    InputPort("zebra", "Number", created=True),
    InputPort("ant", "String", created=True),
    InputPort("gone", "String", created=True),
)
VALUES: dict[str, Any] = {
    # Not in source order: a fold fills the bag as values come.
    "ant": "a",
    "zebra": 1,
    "count": 3,
    "name": "n",
}


def bag(**values: Any) -> ValueBag:
    return ValueBag(values, "shout")


def refused(call: Any) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return caught.value.message


@pytest.mark.parametrize(
    ("value", "type_", "result"),
    [
        ("x", str, "x"),
        (3, int, 3),
        (3.0, int, 3),
        (3, float, 3.0),
        (2.5, int | float, 2.5),
        (3, int | float, 3),
        (True, bool, True),
        (None, str | None, None),
        (None, type(None), None),
        ([1], list, [1]),
        ([1], list[int], [1]),
        ({"a": 1}, dict, {"a": 1}),
        ({"a": 1}, dict[str, int], {"a": 1}),
        ("a", Literal["a", "b"], "a"),
        ([None, "x"], Any, [None, "x"]),
    ],
)
def test_get_as_a_type(value: Any, type_: Any, result: Any) -> None:
    got = bag(it=value).get("it", type_)
    assert got == result
    assert type(got) is type(result)


@pytest.mark.parametrize(
    ("value", "type_", "words"),
    [
        ("x", int, "a String, not a Number"),
        (True, int, "a Boolean, not a Number"),
        (False, float, "a Boolean, not a Number"),
        (1, bool, "a Number, not a Boolean"),
        (2.5, int, "2.5, not a whole number"),
        (None, str, "null, not a String"),
        (None, int, "null, not a Number"),
        ({}, list, "a Dict, not a List"),
        ([1, "x"], list[int], "[1] is a String, not a Number"),
        ({"a": {"b": 1}}, dict[str, dict[str, str]], "a.b is a Number, not a String"),
        ("c", Literal["a", "b"], '"c"'),
    ],
)
def test_a_wrong_type_names_input_expected_and_got(value: Any, type_: Any, words: str) -> None:
    message = refused(lambda: bag(it=value).get("it", type_))
    assert message.startswith("the input `it` of `shout` is ")
    assert words in message
    assert refused(lambda: bag(it=value).get_or("it", 7, type_)) == message, "no default hides it"
    if value is not None:
        assert refused(lambda: bag(it=value).opt("it", type_)) == message


def test_without_a_type_the_value_is_as_the_port_declares_it() -> None:
    assert bag(it=None).get("it") is None
    assert bag(it=[1]).get("it") == [1]


def test_absent_and_null_are_two_things() -> None:
    values = ValueBag(VALUES, "shout", PORTS)
    assert "`absent` of `shout` has no value" in refused(lambda: values.get("absent"))
    assert values.get_or("absent", "else") == "else"
    assert values.opt("absent", str) is None
    assert bag(it=None).get_or("it", "else") is None
    assert bag(it=None).opt("it", str) is None
    assert "absent" not in values
    assert "it" in bag(it=None)


def test_an_unknown_name_gets_the_nearest() -> None:
    values = ValueBag(VALUES, "shout", PORTS)
    assert refused(lambda: values.get("nmae")) == "`shout` has no input `nmae`; did you mean `name`?"
    assert "there are `name`, `count`, `absent`" in refused(lambda: values.get("whatever"))
    assert "there are none" in refused(lambda: bag().get("x"))
    assert refused(lambda: values.raw("nmae")) == refused(lambda: values.list("nmae"))


def test_list_takes_a_single_value_as_a_list_of_one() -> None:
    assert bag(it=[1, 2]).list("it", int) == [1, 2]
    assert bag(it=1).list("it", int) == [1]
    assert bag(it=[]).list("it", int) == []
    assert bag(it=None).list("it", int | None) == [None]
    assert "`it[1]` of `shout` is a String, not a Number" in refused(lambda: bag(it=[1, "x"]).list("it", int))


def test_nested_bags_carry_their_path() -> None:
    values = bag(params={"llm": {"temperature": "hot", "top": 1}})
    inner = values.nested("params").nested("llm")
    assert inner.get("top", int) == 1
    assert "`params.llm.temperature` of `shout`" in refused(lambda: inner.get("temperature", float))
    assert refused(lambda: inner.get("tpo")) == ("`params.llm` of `shout` has no key `tpo`; did you mean `top`?")
    assert "not a JsonDict" in refused(lambda: bag(it=[1]).nested("it"))


def test_order_is_that_of_the_source() -> None:
    values = ValueBag(VALUES, "shout", PORTS)
    assert list(values) == ["name", "count", "zebra", "ant"]
    assert values.in_order() == [("name", "n"), ("count", 3), ("zebra", 1), ("ant", "a")]
    assert list(values.created().items()) == [("zebra", 1), ("ant", "a")]
    assert list(values.declared().items()) == [("name", "n"), ("count", 3)]
    assert len(values) == 4


def test_what_is_handed_out_may_be_changed() -> None:
    shared: dict[str, Any] = {"list": [[1], {"a": 1}]}
    values = ValueBag(shared, "shout", (InputPort("list", "List[T]", created=True),))
    for read in (
        lambda: values.get("list"),
        lambda: values.get("list", list),
        lambda: values.get("list", list[Any]),
        lambda: values.get_or("list", None),
        lambda: values.opt("list"),
        lambda: values.raw("list"),
        lambda: values.list("list"),
        lambda: values.created()["list"],
        lambda: values.in_order()[0][1],
    ):
        got = read()
        got[0].append(2)
        got[1]["a"] = 2
    assert shared == {"list": [[1], {"a": 1}]}


def test_a_type_that_is_none_is_said_to_be_none() -> None:
    assert "no type for tuple[int, int]" in refused(lambda: bag(it=1).get("it", tuple[int, int]))
