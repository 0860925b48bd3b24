"""The rules of the house, held by reading the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "weft").rglob("*.py"))
LONGEST_MODULE = 500


def name_of(module: Path) -> str:
    return str(module.relative_to(ROOT))


def imported(module: Path) -> set[str]:
    """The first names of what a module imports, wherever in it."""
    names: set[str] = set()
    for statement in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and statement.level == 0:
            names.add(statement.module)
    return {name.partition(".")[0] for name in names}


def test_imports_go_down_only() -> None:
    check = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_says_what_lives_in_it_and_is_short(module: Path) -> None:
    text = module.read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST_MODULE
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "a module starts with a docstring"


def test_only_the_store_speaks_to_postgresql() -> None:
    speakers = {name_of(module) for module in MODULES if "asyncpg" in imported(module)}
    assert all(name.startswith("weft/store/") for name in speakers), speakers


def test_only_the_parser_knows_lark() -> None:
    knowers = {name_of(module) for module in MODULES if "lark" in imported(module)}
    assert knowers <= {"weft/lang/parser.py"}


def test_the_pure_rooms_know_no_event_loop() -> None:
    for module in MODULES:
        if name_of(module).split("/")[1] in ("lang", "flow", "rules"):
            assert not imported(module) & {"asyncio", "anyio", "httpx", "socket"}, name_of(module)


def test_only_the_settings_read_the_environment() -> None:
    # The embedded server hands the environment on to PostgreSQL's programs, and a node to its own; the
    # command line asks about the terminal.
    readers = {
        name_of(module)
        for module in MODULES
        if "os.environ" in module.read_text("utf-8") or "os.getenv" in module.read_text("utf-8")
    }
    allowed = ("weft/settings.py", "weft/store/embedded/", "weft/cli/", "weft/nodes/")
    assert all(name.startswith(allowed) for name in readers), readers


def test_no_module_waits_with_asyncio_wait_for() -> None:
    # On Python 3.11 it can swallow a cancel.
    users = [name_of(module) for module in MODULES if "wait_for(" in module.read_text("utf-8")]
    assert users == []


def test_no_pattern_has_a_possessive_group() -> None:
    # Python 3.11.2, which Debian 12 has, never matches one; later ones do, and would hide it.
    patterns = [ROOT / "grammar" / "weft.lark", *MODULES]
    assert [name_of(file) for file in patterns if re.search(r"[^\\]\)[*+?]\+", file.read_text("utf-8"))] == []
