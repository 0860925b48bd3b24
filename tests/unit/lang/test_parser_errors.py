"""Where a mistake is pointed at, what is said of it, and what is still read around it.

The rules one by one, each on its line, are in `tests/lang/syntax`. Here is what an annotation cannot hold: mistakes
that reach to the end of a file, lists that a comment would spoil, and columns.
"""

from __future__ import annotations

import pytest

from tests.unit.lang.trees import errors, only_error, tree
from weft.lang.diagnostics import Source
from weft.lang.parser import parse
from weft.lang.syntax import ContainerDecl, File, NodeDecl


def read_around(text: str) -> File:
    return parse(Source("x.weft", text))[0]


def ids(file: File) -> list[str]:
    return [item.id.text for item in file.items if isinstance(item, NodeDecl | ContainerDecl) and item.id]


LONG = "\n".join(f'n{number} = Text {{\n  value: "{number}"\n}}' for number in range(430))


def test_fault_b68_an_unclosed_brace_in_a_long_file_is_pointed_at_where_it_opens() -> None:
    opened = LONG.replace('  value: "7"\n}', '  value: "7"', 1)
    error = only_error(opened)
    assert (error.line, error.column) == (22, 11)
    assert "never closed" in error.message and "line 1289" in error.message
    last = LONG.removesuffix("}")
    error = only_error(last)
    assert (error.line, error.column) == (1288, 13)
    assert "never closed" in error.message and "line 1289" in error.message


def test_fault_b68_an_unclosed_text_block_in_a_long_file_is_pointed_at_where_it_opens() -> None:
    error = only_error(LONG.replace('"7"', "```7", 1))
    assert (error.line, error.column) == (23, 10)
    assert "never closed" in error.message and "line 1290" in error.message


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("a = T {", 1, 7, "line 1"),
        ("a = T { x: 1\n\n\n", 1, 7, "line 1"),
        ("a = T {\n  x: [1,\n 2", 2, 6, "line 3"),
        ('a = T {\n  x: {"a": 1', 2, 6, "line 2"),
        ("a = T(x: String,\n", 1, 6, "line 1"),
        ("a = T(x: List[String", 1, 14, "line 1"),
        ('a = T { x: @file("x"', 1, 12, "line 1"),
        ("a = T {\n  x: ```\n\n", 2, 6, "line 2"),
        ("type A = {a: B", 1, 10, "line 1"),
        ("g = Group {\n  a = T {\n    x: 1\n  }\n", 1, 11, "line 4"),
    ],
)
def test_what_is_never_closed_is_pointed_at_and_the_end_of_the_file_named(
    text: str, line: int, column: int, part: str
) -> None:
    first = errors(text)[-1]
    assert (first.line, first.column) == (line, column), first.render()
    assert part in first.message and "closed" in first.message


def test_every_brace_that_is_open_at_the_end_is_told() -> None:
    assert [(error.line, error.column) for error in errors("g = Group {\n  n = T {\n    x: 1\n")] == [(1, 11), (2, 9)]


def test_a_text_that_swallows_the_brace_of_its_line_is_one_mistake() -> None:
    assert only_error('a = T { x: "never closed }\nb = T').column == 12
    assert ids(read_around('a = T { x: "never closed }\nb = T')) == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "line", "part"),
    [
        ('{\n  "a": 1,\n  "b": 2\n  "c": 3\n}', 3, "expected ',' or '}' after `2`"),
        ("[\n  1\n  2\n]", 2, "expected ',' or ']' after `1`"),
        ('{\n  "a": [1,\n    2,\n    three\n  ]\n}', 4, "`three`"),
        ('{\n  "a": 1,\n  "b": 2,\n}', 3, "take the ',' away"),
        ('{\n  "a": 1,\n  "a": 2\n}', 3, 'the object has a key "a" already'),
        ("[\n  1,\n  # two\n  2\n]", 3, "no comment stands inside a list"),
        ("[\n  1,\n  2\n}", 4, "ends with ']'"),
    ],
)
def test_a_mistake_inside_a_list_or_object_is_on_its_own_line(value: str, line: int, part: str) -> None:
    for before, first in (("n = T { x: ", 1), ("n = T {\n\n  y: 1\n  x: ", 4)):
        error = only_error(f"{before}{value} z: 1 }}\nm = T")
        assert error.line == first + line - 1 and part in error.message, error.render()


@pytest.mark.parametrize(
    "opened",
    ["a = T(x: String", "a = T { x: [1, 2", 'a = T { x: {"k": 1', "a = T(x: List[String", "a = T(x: {b: String"],
)
def test_a_bracket_that_the_next_line_shows_to_be_open_costs_only_its_entry(opened: str) -> None:
    first = errors(f"{opened}\nb = T {{\n  x: 1\n}}\nb.y = 2")[0]
    assert "never closed" in first.message and first.line == 1, first.render()


def test_a_list_that_the_next_field_shows_to_be_open_costs_only_its_field() -> None:
    text = "a = T {\n  x: [1, 2\n  y: 3\n}\nb = T\na.y = 4"
    unclosed, twice = errors(text)
    assert (unclosed.line, unclosed.column) == (2, 6) and "never closed" in unclosed.message
    assert twice.line == 6 and "`a.y` has a value already" in twice.message
    assert ids(read_around(text)) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a = T\nb = = T\nc = T", ["a", "c"]),
        ("a = T\nb = T { x raw }\nc = T", ["a", "b", "c"]),
        ("a = T\nb = T(1x: A) {\n  y: 1\n}\nc = T", ["a", "b", "c"]),
        ("a = T\n= T {\n  y: 1\n}\nc = T", ["a", "c"]),
        ("a = T { x: 1 }\n)\nc = T", ["a", "c"]),
        ("a = T\n{\n  x: 1\n}\nc = T", ["a", "c"]),
        ("a = T { x: [1, 2,, 3] y: 1 }\nc = T", ["a", "c"]),
        ("a = T { x: U { y z }.o }\nc = T", ["a", "c"]),
        ("a.b.c = 1\nc = T", ["c"]),
        ("a = T {\n  x: @file(\n  y: 1\n}\nc = T", ["a", "c"]),
    ],
)
def test_what_is_around_a_mistake_is_read(text: str, left: list[str]) -> None:
    only_error(text)
    assert ids(read_around(text)) == left


def test_a_marker_closes_on_its_line() -> None:
    error = only_error("n = T {\n  @require_one_of(a\n  b: 1\n}")
    assert (error.line, error.column) == (2, 3) and "not closed on its line" in error.message
    error = only_error('n = T { x: @file("x",\n  String) }')
    assert error.line == 1 and "one line" in error.message


def test_names_that_could_not_be_read_are_no_further_mistakes() -> None:
    only_error("a = = T\na.x = 1")
    only_error("g = Group(1: A) {\n  n = T\n}\ng.x = 1")
    only_error("a = T {\n  x: 1\n  b = T\n  c = T\n}\nb.x = 2\nc.x = 3")


def test_a_program_of_mistakes_only_tells_all_of_them() -> None:
    assert len(errors("a b\n" * 500)) == 500


def test_an_included_file_without_a_group_says_what_it_should_hold() -> None:
    assert "one group" in only_error("# nothing", included=True).message


def test_places_count_code_points_from_one() -> None:
    error = only_error('# 😀\n\ta = T { é: "😀" }')
    assert (error.line, error.column, error.end_line, error.end_column) == (2, 10, 2, 11)
    assert error.source_line == '\ta = T { é: "😀" }'
    assert error.render().splitlines()[2].index("^") == 2 + 9


@pytest.mark.parametrize(
    ("character", "part"),
    [
        ("\u00a0", "non-breaking space"),
        ("\u2003", "EM SPACE"),
        ("\ufeff", "byte order mark"),
        ("\x00", "U+0000"),
        ("\x1b", "U+001B"),
        ("ü", "names are made of the letters"),
        ("“", "straight double quotes"),
        ("`", "one backtick"),
        ("$", "`node.port`"),
        ("%", "`%` (U+0025) means nothing here"),
    ],
)
def test_a_character_that_stands_nowhere_is_told_by_name(character: str, part: str) -> None:
    error = only_error(f"a = T {{ x: {character} }}\nb = T")
    assert part in error.message and (error.line, error.column) == (1, 12)


def test_a_byte_order_mark_alone_is_told() -> None:
    assert "byte order mark" in only_error("\ufeffa = T").message


def test_nothing_is_wrong_with_a_good_program() -> None:
    assert ids(tree(LONG)) == [f"n{number}" for number in range(430)]
