"""Every diagnostic of the compiler, in annotated files: where it is told, and where it is not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.lang.annotated import read, unmet
from tests.unit.lang.nodes import CATALOG, FakeFiles
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source

HERE = Path(__file__).parent
FILES = sorted((HERE / "diagnostics").glob("*.weft"))
COMPILER = HERE.parents[1] / "weft" / "lang"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_compiler_says_exactly_what_is_annotated(path: Path) -> None:
    annotated = read(path)
    compiled = compile_source(Source(path.name, annotated.text), CATALOG, FakeFiles(annotated.files))
    assert not (wrong := unmet(annotated.expected, compiled.diagnostics)), "\n".join(wrong)
    assert compiled.ok == all(each.severity == "warning" for each in annotated.expected)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_finding_has_a_real_place(path: Path) -> None:
    annotated = read(path)
    lines = annotated.text.split("\n")
    for each in compile_source(Source(path.name, annotated.text), CATALOG, FakeFiles(annotated.files)).diagnostics:
        assert 1 <= each.line <= each.end_line <= len(lines)
        assert 1 <= each.column <= len(lines[each.line - 1]) + 1
        assert (each.line, each.column) <= (each.end_line, each.end_column)
        assert each.source_line in (lines[each.line - 1], "")


def slugs_in(folder: str) -> set[str]:
    """The slugs that stand in the code of a part of the compiler."""
    found = set()
    for module in (COMPILER / folder).rglob("*.py"):
        for part in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                found.update(re.findall(r"^[a-z]+(?:-[a-z]+)+$", part.value))
    return found


def test_every_diagnostic_has_an_annotated_file() -> None:
    annotated = {each.slug for path in FILES for each in read(path).expected}
    assert slugs_in("check") | slugs_in("resolve") <= annotated
