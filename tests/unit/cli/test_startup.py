"""What a command loads before it does anything: start-up time is a promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def loaded_by(module: str, *names: str) -> set[str]:
    """Which of these modules are loaded once another is."""
    code = f"import sys, {module}; print(*(set({names!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_options_alone_load_no_work():
    heavy = ("rich", "pydantic", "structlog", "asyncpg", "lark", "httpx", "anyio", "weft.service", "weft.store")
    assert loaded_by("weft.cli.app", *heavy) == set()


@pytest.mark.parametrize("module", ["weft.cli.commands.run", "weft.service.running"])
def test_a_run_loads_nothing_that_it_may_not_need(module: str):
    assert loaded_by(module, "rich", "pydantic", "structlog", "httpx") == set()


def test_check_loads_no_database():
    assert loaded_by("weft.cli.commands.check", "asyncpg", "weft.engine", "weft.store.pool") == set()
