"""Values given to a program's inputs: as if written there, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from weft.lang.compile import GivenRefused, compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import Program
from weft.nodes.registry import Registry


class NoFiles:
    def read(self, path: str) -> str:
        raise OSError(path)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load([])


def compiled(registry: Registry, text: str, given: dict[str, Any]) -> Program:
    made = compile_source(Source("x.weft", text), registry, NoFiles(), given)
    assert made.program is not None, [each.render() for each in made.diagnostics]
    return made.program


def literal(program: Program, node: str, port: str) -> Any:
    [found] = [each for each in program.nodes if each.id == node]
    return next(each.literal for each in found.inputs if each.name == port)


def test_a_given_value_is_one_that_is_written(registry: Registry) -> None:
    text = "d = Text\nshow = Debug { data: d.value }"
    assert not compile_source(Source("x.weft", text), registry, NoFiles()).ok
    program = compiled(registry, text, {"d": {"value": "given"}})
    assert literal(program, "d", "value") == "given"
    written = 'd = Text { value: "given" }\nshow = Debug { data: d.value }'
    assert program.hash == compiled(registry, written, {}).hash
    over = compiled(registry, written, {"d": {"value": "other"}})
    assert literal(over, "d", "value") == "other"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"dd": {"value": "x"}}, "no node `dd`"),
        ({"d": {"values": "x"}}, "no input `values`; did you mean `value`"),
        ({"show": {"data": 1}}, "`show.data` is wired"),
        ({"d": {"value": {"not": "a text"}}}, "`d.value` takes String"),
        ({"d": {"value": "nul\0"}}, "cannot be stored"),
        ({"d": 7}, "an object from port to value"),
        ({"d": {"_should_flow": True}}, "no input `_should_flow`"),
    ],
)
def test_what_takes_no_such_value_is_named(registry: Registry, given: dict[str, Any], named: str) -> None:
    text = 'd = Text { value: "x" }\nshow = Debug { data: d.value }'
    with pytest.raises(GivenRefused, match=named):
        compiled(registry, text, given)


def test_what_the_compiler_reads_is_not_to_be_given(registry: Registry) -> None:
    text = 'ask = HumanQuery { fields: [{ "kind": "text_input", "key": "a" }] }\nshow = Debug { data: ask.a }'
    with pytest.raises(GivenRefused, match="read by the compiler"):
        compiled(registry, text, {"ask": {"fields": []}})
