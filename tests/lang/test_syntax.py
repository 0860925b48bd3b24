"""Every rule of syntax in annotated files: what the parser says stands on its line, and it says nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lang.annotated import read, unmet
from weft.lang.diagnostics import Source
from weft.lang.parser import parse

HERE = Path(__file__).parent / "syntax"


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.weft")), ids=lambda path: path.stem)
def test_the_parser_says_exactly_what_is_annotated(path: Path) -> None:
    annotated = read(path)
    _, found = parse(Source(path.name, annotated.text), included=path.parent.name == "included")
    assert not (wrong := unmet(annotated.expected, found)), "\n".join(wrong)
    assert found == sorted(found, key=lambda each: (each.line, each.column))
