"""Types: reading and writing them, and which fit which."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.lang.types import (
    EMPTY,
    MAX_NESTING,
    NULL,
    NUMBER,
    STRING,
    DictOf,
    ListOf,
    Type,
    Union,
    Variable,
    admits_null,
    assignable,
    is_open,
    parse_type,
    substitute,
    union,
)
from weft.lang.values import cast_allowed

SIMPLE = ["String", "Number", "Boolean", "Null", "Empty", "JsonDict", "MustOverride", "T", "T1", "T42"]


def types(leaves: list[str] = SIMPLE) -> st.SearchStrategy[Type]:
    return st.recursive(
        st.sampled_from(leaves).map(parse_type),
        lambda inner: st.one_of(
            inner.map(ListOf),
            st.tuples(inner, inner).map(lambda pair: DictOf(*pair)),
            st.lists(inner, min_size=1, max_size=3).map(lambda members: union(*members)),
        ),
        max_leaves=8,
    )


@given(types())
def test_the_text_of_a_type_reads_back_as_the_type(type_: Type) -> None:
    assert parse_type(str(type_)) == type_
    assert str(parse_type(str(type_))) == str(type_)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" Dict [ String ,List[ T ] ] ", "Dict[String, List[T]]"),
        ("((String) | (Number | String))", "String | Number"),
        ("String | Empty", "String"),
        ("Empty | Empty", "Empty"),
        ("List[Null | Number]", "List[Null | Number]"),
    ],
)
def test_a_type_has_one_canonical_text(text: str, canonical: str) -> None:
    assert str(parse_type(text)) == canonical


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a type's name is missing"),
        ("Strng", "no type `Strng`"),
        ("Ticket", "no type `Ticket`"),
        ("T1a", "no type `T1a`"),
        ("List", "expected `[`"),
        ("List[String", "expected `]`"),
        ("List[String, Number]", "expected `]`"),
        ("Dict[String]", "expected `,`"),
        ("String Number", "nothing can follow"),
        ("String |", "a type's name is missing"),
        ("{ a: String }", "`{` cannot stand there"),
        ("String\u00a0", "cannot stand there"),
        ("List[" * 300 + "String" + "]" * 300, "200 levels"),
    ],
)
def test_what_is_no_type_says_why(text: str, says: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_type(text)
    assert says in str(raised.value)


@pytest.mark.parametrize(("opens", "closes"), [("List[", "]"), ("Dict[String, ", "]"), ("List[", " | Null]")])
def test_types_nest_as_deep_as_the_language_allows(opens: str, closes: str) -> None:
    texts = [opens * MAX_NESTING + leaf + closes * MAX_NESTING for leaf in ("String", "Number", "T")]
    string, number, variable = map(parse_type, texts)
    assert [str(type_) for type_ in (string, number, variable)] == texts
    assert string != number and not assignable(string, number) and cast_allowed(string, number)
    assert assignable(variable, number) and is_open(variable)
    assert substitute(variable, lambda _: STRING) == string


def test_unions_and_their_members_compare_as_sets() -> None:
    assert parse_type("String | Number") == parse_type("Number | String")
    assert hash(parse_type("String | Number")) == hash(parse_type("Number | String"))
    assert parse_type("List[String | Number]") == parse_type("List[Number | String]")
    assert parse_type("String | Number") != parse_type("String | Boolean")


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("T", "Number", True),
        ("Number", "T", True),
        ("MustOverride", "Number", True),
        ("List[T]", "List[Number]", True),
        ("Empty", "Number", True),
        ("Number", "Empty", False),
        ("String", "String", True),
        ("Number", "String", False),
        ("Boolean", "Number", False),
        ("Null", "String", False),
        ("List[Empty]", "List[String]", True),
        ("List[String]", "List[String | Null]", True),
        ("List[String | Null]", "List[String]", False),
        # A list is not its item, and an item no list (B76).
        ("List[String]", "String", False),
        ("String", "List[String]", False),
        ("Dict[String, Number]", "Dict[String, Number | Null]", True),
        ("Dict[Number, Number]", "Dict[String, Number]", False),
        ("JsonDict", "JsonDict", True),
        ("JsonDict", "Dict[String, Number]", True),
        ("JsonDict", "Dict[Number, Number]", False),
        ("Dict[String, Number]", "JsonDict", True),
        ("Dict[Number, Number]", "JsonDict", False),
        ("JsonDict", "List[String]", False),
        ("String", "String | Null", True),
        ("String | Null", "String", False),
        ("String | Number", "Number | String | Null", True),
        ("String | Boolean", "Number | String", False),
        ("List[String] | List[Number]", "List[String | Number]", True),
        ("List[String | Number]", "List[String] | List[Number]", False),
    ],
)
def test_which_type_fits_which(source: str, target: str, fits: bool) -> None:
    assert assignable(parse_type(source), parse_type(target)) is fits


CLOSED = ["String", "Number", "Boolean", "Null", "Empty", "JsonDict"]


@given(types(CLOSED), types(CLOSED), types(CLOSED))
def test_fitting_is_reflexive_and_a_union_takes_its_members(a: Type, b: Type, c: Type) -> None:
    assert assignable(a, a)
    assert assignable(a, union(a, b)) and assignable(b, union(a, b))
    assert assignable(union(a, b), c) == (assignable(a, c) and assignable(b, c))


@pytest.mark.parametrize(
    ("text", "open_"), [("List[T]", True), ("Dict[String, MustOverride]", True), ("JsonDict", False)]
)
def test_a_type_with_a_variable_in_it_is_open(text: str, open_: bool) -> None:
    assert is_open(parse_type(text)) is open_


def test_substitution_flattens_the_union_that_it_makes() -> None:
    bound = substitute(parse_type("List[T | Null]"), lambda _: union(STRING, NULL))
    assert bound == ListOf(Union((STRING, NULL)))
    assert substitute(Variable("T"), lambda _: EMPTY) == EMPTY
    assert substitute(parse_type("T | T1"), lambda _: NUMBER) == NUMBER


@pytest.mark.parametrize(("text", "admits"), [("String", False), ("String | Null", True), ("Null", True), ("T", True)])
def test_which_types_admit_null(text: str, admits: bool) -> None:
    assert admits_null(parse_type(text)) is admits
