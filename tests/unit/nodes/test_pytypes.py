"""Python types to the language's types."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, TypeVar, Union

import pytest
from pydantic import BaseModel

from weft import MustOverride
from weft.nodes.reading.pytypes import Unsayable, say

T = TypeVar("T")
T1 = TypeVar("T1")
Item = TypeVar("Item")


class Model(BaseModel):
    text: str


@dataclass
class Data:
    text: str


class Typed(TypedDict):
    text: str


class Pair(NamedTuple):
    text: str


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "String"),
        (int, "Number"),
        (float, "Number"),
        (int | float, "Number"),
        (bool, "Boolean"),
        (None, "Null"),
        (type(None), "Null"),
        (list[str], "List[String]"),
        (list, "List[T_Auto]"),
        (list[Any], "List[T_Auto]"),
        (list[list[int]], "List[List[Number]]"),
        (dict, "JsonDict"),
        (dict[str, Any], "JsonDict"),
        (dict[str, int], "Dict[String, Number]"),
        (dict[str, str | None], "Dict[String, String | Null]"),
        (Any, "T_Auto"),
        (T, "T"),
        (T1, "T1"),
        (list[T], "List[T]"),
        (str | None, "String | Null"),
        (Optional[int], "Number | Null"),  # noqa: UP045 - the old spelling works too
        (Union[str, list[str]], "String | List[String]"),  # noqa: UP007
        (bool | int, "Boolean | Number"),
        (MustOverride, "MustOverride"),
        (Annotated[str, "anything"], "String"),
        (Literal["a", "b"], "String"),
    ],
    ids=str,
)
def test_what_the_language_can_say(annotation: Any, text: str) -> None:
    assert str(say(annotation).type) == text


@pytest.mark.parametrize(
    ("annotation", "options"),
    [
        (Literal["a", "b"], ("a", "b")),
        (Literal["a", "b"] | None, ("a", "b")),
        (Literal["a"] | Literal["b", "a"], ("a", "b")),
        (list[Literal["a", "b"]], ("a", "b")),
        (list[Literal["a"]] | None, ("a",)),
        (str, None),
    ],
    ids=str,
)
def test_options_of_a_literal(annotation: Any, options: tuple[str, ...] | None) -> None:
    assert say(annotation).options == options


@pytest.mark.parametrize(
    ("annotation", "words", "hint"),
    [
        (tuple[str, int], "tuple[str, int]", "list[…]"),
        (set[str], "set[str]", "list[…]"),
        (bytes, "bytes", "str"),
        (datetime, "datetime", "ISO 8601"),
        (object, "object", "Any"),
        (complex, "complex", None),
        (dict[int, str], "keys of a dictionary are text, not int", "dict[str, str]"),
        (Literal[1, 2], "1 is none", "Port(options=[…])"),
        (Literal["a"] | int, "options cannot be told apart", "Literal alone"),
        (Literal["a"] | list[Literal["b"]], "options cannot be told apart", "Literal alone"),
        (Item, "T, T1, T2, …, not Item", 'TypeVar("T")'),
        (Model, "Model is a record, and the language has no records yet", "dict[str, Any]"),
        (Data, "Data is a record", "one port a field"),
        (Typed, "Typed is a record", "one port a field"),
        (Pair, "Pair is a record", "one port a field"),
        (list[Typed], "Typed is a record", "one port a field"),
        (dict[str, Model], "Model is a record", "one port a field"),
        ("str", "no type for str", None),
        (3, "no type for 3", None),
    ],
    ids=str,
)
def test_what_it_cannot_say(annotation: Any, words: str, hint: str | None) -> None:
    with pytest.raises(Unsayable) as caught:
        say(annotation)
    assert words in str(caught.value)
    if hint is None:
        assert caught.value.hint is None
    else:
        assert hint in (caught.value.hint or "")
