"""The parser on texts that nobody wrote: it never raises or hangs, has a place for all it says, and never says it in
the grammar's words."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data import data_folder
from weft.lang.diagnostics import Diagnostic, Source
from weft.lang.parser import parse
from weft.lang.parsing.lexer import MISFITS

ROOT = Path(__file__).parents[3]
GRAMMAR = (data_folder("grammar") / "weft.lark").read_text("utf-8")
TERMINALS = {
    *re.findall(r"^([A-Z_]+)(?:\.\d+)?:", GRAMMAR, re.MULTILINE),
    *(name for name, _ in MISFITS),
    *("LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "COLON", "DOT", "QMARK", "VBAR", "__ANON"),
    *("BRACE_BELOW", "LATE_ARROW", "COMMENT_IN_VALUE", "MARK"),
}
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")
WRITTEN = [path.read_text("utf-8") for path in sorted((ROOT / "tests" / "lang").rglob("*.weft"))]
PIECES = [
    *'{}()[]:,.=?#"`@|-+\n\t \\\0é\u00a0\r\u2028',
    *("->", "```", '"x"', "1e5", "-1", ".5", "true", "null", "Group", "Loop", "type A = ", "self.x = ", "_label: "),
    *("@file(", '@include("x")', "@require_one_of(a)", "@instance_filled(", "@per_instance", "a = T {\n", "x: ", "a.b"),
    *("List[", "{a: B}", "Text { value: 1 }.value", "a.b.c = 1", '{"k": [1, ', "\r\n", "\n\n", " // ", "a = "),
]


def demand_manners(text: str, *, included: bool = False) -> list[Diagnostic]:
    file, found = parse(Source("x.weft", text), included=included)
    lines = text.split("\n")
    for each in found:
        assert 1 <= each.line <= each.end_line <= len(lines), each
        assert 1 <= each.column <= len(lines[each.line - 1]) + 1, each
        assert (each.line, each.column) <= (each.end_line, each.end_column), each
        assert each.severity == "error" and each.message and each.render()
        said = QUOTED.sub("", f"{each.message} {each.hint or ''}")
        assert not set(re.findall(r"[A-Z_]{2,}", said)) & TERMINALS, each
    for comment in file.comments:
        assert text[comment.span.start : comment.span.end] == comment.text
    starts = [comment.span.start for comment in file.comments]
    assert starts == sorted(set(starts))
    return found


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)), st.booleans())
def test_no_text_makes_the_parser_raise(text: str, included: bool) -> None:
    demand_manners(text, included=included)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(WRITTEN), st.data())
def test_nor_does_a_program_that_was_changed(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from([0, 0, 1, 2, 12])))
        text = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    demand_manners(text)


def test_nor_does_a_program_that_stops_anywhere() -> None:
    whole = next(text for text in WRITTEN if "Loop(" in text and "@file" not in text)
    for end in range(len(whole)):
        demand_manners(whole[:end])


def test_nor_do_bytes_of_any_kind() -> None:
    how = random.Random(7)
    for _ in range(20):
        demand_manners(how.randbytes(2_000).decode("latin-1"))
        demand_manners(how.randbytes(2_000).decode("utf-8", "replace"))


LONG = {
    "mistakes on their lines": "a b\n",
    "mistakes on one line": "x = T { a b },",
    "texts never closed": 'a = T { x: "abc\n}\n',
    "brackets": "a = T { x: [",
    "braces": "a = T {\n",
    "parentheses": "a = T(",
    "closing braces": "}\n",
    "values for nothing": "b.x = 1\n",
    "keys": ".a",
    "backslashes": 'a = "\\',
    "backticks": "`",
    "blank lines": "a = T\n\n\n\n-> (b)\n",
    "commas": ",",
}


@pytest.mark.parametrize("kind", LONG)
def test_the_time_grows_with_the_length_and_no_faster(kind: str) -> None:
    """Eight times the text takes no more than thirty times as long: a square would take sixty-four times."""
    repeated = LONG[kind]
    short = repeated * (5_000 // len(repeated))

    def seconds(text: str) -> float:
        started = time.process_time()
        parse(Source("x.weft", text))
        return time.process_time() - started

    seconds(short)
    assert seconds(short * 8) <= 30 * max(seconds(short), 0.005)
