"""Small programs with a known verdict, compiled against the real catalog.

Each file begins with its verdict (`# refused: SLUG…` or `# accepted: WARNING…`) and the node types that it uses. What a
case needs and the compiler does not have yet must be named by its refusal: a construct by `not-yet-supported`, a node
type by `unknown-type`; a mistake of syntax is one either way.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.lang.annotated import read
from tests.unit.lang.nodes import FakeFiles
from weft.lang.compile import Compiled, compile_source
from weft.lang.diagnostics import Source
from weft.lang.parser import parse
from weft.lang.resolve.typenames import NOT_YET
from weft.lang.syntax import (
    AssetMarker,
    ContainerDecl,
    GeneratorTypeExpr,
    IncludeDecl,
    NamedTypeExpr,
    RecordTypeExpr,
    TypeDecl,
)
from weft.nodes.registry import Registry

CASES = Path(__file__).parent / "cases"
REFUSED = sorted((CASES / "refused").glob("*.weft"))
ACCEPTED = sorted((CASES / "accepted").glob("*.weft"))
TO_COME = (ContainerDecl, IncludeDecl, TypeDecl, RecordTypeExpr, GeneratorTypeExpr, AssetMarker)


@pytest.fixture(scope="module")
def catalog() -> Registry:
    return Registry.load()


def header(path: Path, key: str) -> set[str]:
    """The words after `# KEY:` at the top of the file."""
    lines = path.read_text("utf-8").splitlines()
    return {word for line in lines if line.startswith(f"# {key}:") for word in line.partition(":")[2].split()}


def compiled(path: Path, catalog: Registry) -> Compiled:
    case = read(path)
    text = path.read_bytes().decode("utf-8")
    return compile_source(Source(path.name, text), catalog, FakeFiles(case.files))


def slugs(result: Compiled, severity: str) -> set[str]:
    return {each.slug for each in result.diagnostics if each.severity == severity}


def parts(value: Any) -> list[Any]:
    """Everything in a tree, however deep."""
    found, rest = [], [value]
    while rest:
        part = rest.pop()
        found.append(part)
        if dataclasses.is_dataclass(part):
            rest += (getattr(part, field.name) for field in dataclasses.fields(part))
        elif isinstance(part, list | tuple):
            rest += part
    return found


def constructs_to_come(path: Path) -> bool:
    file, _ = parse(Source(path.name, path.read_bytes().decode("utf-8")))
    return any(
        isinstance(part, TO_COME) or (isinstance(part, NamedTypeExpr) and part.name in NOT_YET)
        for part in parts(file.items)
    )


def to_come(path: Path, catalog: Registry) -> set[str]:
    """The slugs that tell what this case uses and the compiler does not have yet."""
    missing = header(path, "nodes") - set(catalog.names())
    named = {"unknown-type"} if missing else set()
    return named | ({"not-yet-supported"} if constructs_to_come(path) else set())


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_an_accepted_case_compiles_or_names_what_is_still_to_come(path: Path, catalog: Registry) -> None:
    result = compiled(path, catalog)
    waits_for = to_come(path, catalog)
    if not waits_for:
        assert result.ok, [each.render() for each in result.diagnostics]
        assert slugs(result, "warning") == header(path, "accepted")
    elif "not-yet-supported" in waits_for:
        # What is inside a group is not looked at, so a node to come in there goes unnamed.
        assert "not-yet-supported" in slugs(result, "error") <= waits_for
    else:
        assert slugs(result, "error") == waits_for


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_case_is_refused_for_its_reason(path: Path, catalog: Registry) -> None:
    result = compiled(path, catalog)
    found, wanted = slugs(result, "error"), header(path, "refused")
    waits_for = to_come(path, catalog)
    in_another_file = path.stem.startswith("include_")
    if not waits_for or (wanted == {"parse"} and not in_another_file):
        assert wanted <= found, [each.render() for each in result.diagnostics]
    else:
        assert found & (wanted | waits_for), [each.render() for each in result.diagnostics]
    assert not result.ok


@pytest.mark.parametrize("path", [*ACCEPTED, *REFUSED], ids=lambda path: path.stem)
def test_every_finding_of_a_case_has_a_real_place(path: Path, catalog: Registry) -> None:
    lines = path.read_bytes().decode("utf-8").split("\n")
    for each in compiled(path, catalog).diagnostics:
        assert 1 <= each.line <= len(lines)
        assert 1 <= each.column <= len(lines[each.line - 1]) + 1
