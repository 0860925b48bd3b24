"""Compiles a text against the tests' catalog, and looks at the program that comes out."""

from __future__ import annotations

from typing import Any

from tests.unit.lang.nodes import CATALOG, FakeFiles
from weft.lang.compile import Compiled, compile_source
from weft.lang.diagnostics import Source
from weft.lang.graph import InputPort, Node, Program


def compiled(text: str, **files: str) -> Compiled:
    named = {name.replace("_", "."): content for name, content in files.items()}
    return compile_source(Source("main.weft", text), CATALOG, FakeFiles(named))


def program(text: str, **files: str) -> Program:
    """The program of a text that must compile."""
    result = compiled(text, **files)
    assert result.program is not None, [each.render() for each in result.diagnostics]
    return result.program


def slugs(text: str, **files: str) -> list[str]:
    return [each.slug for each in compiled(text, **files).diagnostics]


def node(of: Program, id_: str) -> Node:
    return next(each for each in of.nodes if each.id == id_)


def port(of: Program, name: str) -> InputPort:
    """An input, named `node.port`."""
    id_, _, port_name = name.partition(".")
    return next(each for each in node(of, id_).inputs if each.name == port_name)


def literal(of: Program, name: str) -> Any:
    return port(of, name).literal


def input_types(of: Program, id_: str) -> dict[str, str]:
    return {each.name: each.type for each in node(of, id_).inputs}


def output_types(of: Program, id_: str) -> dict[str, str]:
    return {each.name: each.type for each in node(of, id_).outputs}
