"""The whole way from text to a checked program."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from weft.lang.check import check
from weft.lang.diagnostics import Diagnostic, Source
from weft.lang.graph import Program
from weft.lang.lower import lower
from weft.lang.metadata import NodeTypes
from weft.lang.parser import parse
from weft.lang.resolve import Files, Given, GivenRefused, resolve

UNREADABLE = ("parse", "nesting-too-deep")
"""What is told alone: after such an error parts of the tree are missing."""

__all__ = ["Compiled", "Files", "Given", "GivenRefused", "compile_source"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a source: a program, or (None) the errors that stand in its way; warnings either way."""

    program: Program | None
    diagnostics: list[Diagnostic]

    @property
    def ok(self) -> bool:
        return self.program is not None


def compile_source(source: Source, types: NodeTypes, files: Files, given: Given | None = None) -> Compiled:
    """Compile one file. Never raises on any text; errors of the syntax are told alone, all others together.

    `given` are values for inputs, each as if it were written there. Raises GivenRefused for one that does not fit.
    """
    with _collector_paused():
        return _compile(source, types, files, given or {})


def _compile(source: Source, types: NodeTypes, files: Files, given: Given) -> Compiled:
    file, found = parse(source)
    if any(diagnostic.slug in UNREADABLE for diagnostic in found):
        return Compiled(None, found)
    model = resolve(file, types, files, given)
    check(model)
    found = [*found, *model.report.found]
    failed = any(diagnostic.severity == "error" for diagnostic in found)
    program = None if failed else lower(model, source.path)
    model.dissolve()
    return Compiled(program, found)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A compilation only builds up: the cycle collector would walk all of it again and again for nothing.

    Tree and model are gone when it goes on, or it would walk them once more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
