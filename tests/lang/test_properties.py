"""The compiler on texts that nobody wrote: valid ones compile, and no text at all makes it raise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.lang.nodes import CATALOG, FakeFiles
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import Program

HERE = Path(__file__).parent
CHUNKS = 20
RANDOM_TEXTS = 10_000

# --- valid programs ---------------------------------------------------------------------------------------

LITERALS = {
    "String": ['"x"', '"# no comment"', "```\n  raw\n```", '"\\n \\" \\q"'],
    "Number": ["1", "-2.5", '"3"', "0"],
    "Boolean": ["true", "false"],
    "List[String]": ["[]", '["a", "b # c"]'],
    "JsonDict": ["{}", '{ "a": [1, null, { "b": true }] }'],
}


@dataclass
class Writer:
    """Writes a valid program node by node. `fields` are kept apart, so that they can be laid out in several ways."""

    draw: Callable[..., object]
    outputs: list[tuple[str, str]] = field(default_factory=list)
    nodes: list[tuple[str, str, list[tuple[str, str]]]] = field(default_factory=list)

    def choose(self, options: list[str]) -> str:
        return str(self.draw(st.sampled_from(options)))

    def value(self, type_: str) -> str:
        """A wire from an earlier node, an inline node or a written value, of this type."""
        wires = [name for name, its in self.outputs if its == type_]
        if wires and self.draw(st.booleans()):
            return self.choose(wires)
        if type_ == "String" and self.draw(st.booleans()):
            return f"Text {{ value: {self.choose(LITERALS['String'])} }}.value"
        return self.choose(LITERALS[type_])

    def node(self, number: int) -> None:
        name = f"n{number}"
        kind = self.choose(["Text", "ExecPython", "JsonObject", "FirstInOrder", "Not", "HttpRequest", "Switch"])
        header, fields, outputs = "", [], {"value": "String"}
        type_ = self.choose(list(LITERALS))
        if kind == "Text":
            fields = [("value", self.value("String"))]
        elif kind == "ExecPython":
            header = f"(a: {type_}, b?: Number) -> (out: {type_}, other: Boolean)"
            fields = [("a", self.value(type_)), ("b", self.value("Number")), ("code", '"return {}"')]
            outputs = {"out": type_, "other": "Boolean"}
        elif kind == "JsonObject":
            fields = [("p", self.value(type_)), ("q", self.value("String"))]
            outputs = {"value": "JsonDict"}
        elif kind == "FirstInOrder":
            header = f"-> (value: {type_})"
            fields = [("z", self.value(type_)), ("a", self.value(type_))]
            outputs = {"value": type_}
        elif kind == "Not":
            fields, outputs = [("value", self.value("Boolean"))], {"value": "Boolean"}
        elif kind == "HttpRequest":
            fields = [("url", self.value("String")), ("method", '"PUT"')]
            outputs = {"status": "Number", "ok": "Boolean"}
        else:
            # Without quotes: a text would make it a Switch over a String.
            fields = [
                ("value", self.value("Number").strip('"')),
                ("cases", '[{ "kind": "gt", "value": 1, "port": "big" }]'),
            ]
            outputs = {"big": "Boolean"}
        if self.draw(st.booleans()):
            fields.append(("_should_flow", self.value("Boolean").replace('"', "")))
        self.nodes.append((name, f"{kind}{header}", fields))
        self.outputs += [(f"{name}.{port}", its) for port, its in outputs.items()]


@st.composite
def programs(draw: Callable[..., object]) -> Writer:
    writer = Writer(draw)
    for number in range(int(str(draw(st.integers(1, 8))))):
        writer.node(number)
    return writer


def laid_out(writer: Writer, how: random.Random) -> str:
    """The program as text, its blanks, commas and comments by chance. Nodes and fields keep their order."""
    lines = []
    for name, head, fields in writer.nodes:
        inside = list(fields)
        outside = []
        while inside and inside[-1][0] != "cases" and how.random() < 0.3:
            outside.insert(0, inside.pop())
        gap = how.choice([" ", ", ", "\n  ", "  # words\n  ", "\n\n,\t"])
        body = gap.join(f"{key}:{how.choice(['', ' ', '  '])}{value}" for key, value in inside)
        braces = f"{{ {body} }}" if inside else how.choice(["{}", ""])
        lines.append(f"{name} = {head} {braces}")
        lines += [f"{name}.{key} = {value}" for key, value in outside]
        if how.random() < 0.3:
            lines.append("# between")
    return "\n".join(lines) + how.choice(["", "\n", "\n# end"])


def compile_text(text: str) -> Program:
    result = compile_source(Source("x.weft", text), CATALOG, FakeFiles())
    assert result.program is not None, text + "\n\n" + "\n".join(each.render() for each in result.diagnostics)
    return result.program


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(), st.integers())
def test_a_valid_program_compiles_and_its_layout_does_not_matter(writer: Writer, one: int, other: int) -> None:
    first = compile_text(laid_out(writer, random.Random(one)))
    assert len(first.nodes) >= len(writer.nodes)
    assert compile_text(laid_out(writer, random.Random(other))).hash == first.hash
    assert Program.from_text(first.text()) == first


# --- any text ---------------------------------------------------------------------------------------------

WRITTEN = [path.read_text("utf-8") for path in sorted(HERE.rglob("*.weft"))]
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
PIECES = [
    *'{}()[]:,.=?#"`@|-\n\t \\\0é\u00a0\u2028😀',
    *("->", "```", '"x"', "1e5", "-1", "true", "null", "Group", "Loop", "type", "self", "_should_flow", "_label"),
    *("@file(", '@asset("a")', "@include(", "@require_one_of(", "@instance_filled", "@per_instance"),
    *("List[", "Dict[String, T]", "{ a: String }", "Generator[T]", "Text { value: 1 }.value", "a.b.c", "T | Null"),
    *("a = Text", "Switch", 'cases: [{ "kind": "in" }]', "Cast -> (value: T)", "__", "𐀀", "\r\n", "\r"),
]


def mutated(text: str, how: random.Random) -> str:
    """The text with a few of its tokens lost, doubled, exchanged or replaced."""
    tokens = TOKEN.findall(text)
    for _ in range(how.choice([1, 1, 2, 3, 8, 30])):
        if not tokens:
            break
        at, other = how.randrange(len(tokens)), how.randrange(len(tokens))
        match how.randrange(6):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[other])
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = how.choice(PIECES)
            case 4:
                tokens.insert(at, how.choice(PIECES))
            case 5:
                del tokens[at : at + how.randrange(12)]
    return "".join(tokens)


def demand_real_places(text: str) -> None:
    lines = text.split("\n")
    for each in compile_source(Source("x.weft", text), CATALOG, FakeFiles()).diagnostics:
        assert 1 <= each.line <= each.end_line <= len(lines), each
        assert 1 <= each.column <= len(lines[each.line - 1]) + 1, each
        assert (each.line, each.column) <= (each.end_line, each.end_column), each
        assert each.message and each.slug and each.render()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_text_makes_the_compiler_raise_and_every_finding_has_a_place(chunk: int) -> None:
    how = random.Random(chunk)
    for _ in range(RANDOM_TEXTS // CHUNKS):
        if how.random() < 0.1:
            text = "".join(how.choice(PIECES) for _ in range(how.randrange(60)))
        else:
            text = mutated(how.choice(WRITTEN), how)
        try:
            demand_real_places(text)
        except Exception as error:
            error.add_note(f"the text was {text!r}")
            raise


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from(PIECES)).map("".join), st.lists(st.sampled_from(PIECES)).map(" ".join)
    )
)
def test_nor_does_a_text_that_hypothesis_makes(text: str) -> None:
    demand_real_places(text)
