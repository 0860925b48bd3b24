"""The wheel, as somebody gets it who never sees the checkout.

It is built, installed in an empty environment in another folder, and a program is run with it. What it depends on
is lent by the environment of the tests, so that nothing is downloaded; weft itself is not.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from what stands in the checkout."""
    place = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = place.glob("weft_runtime-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs' folder of an environment with nothing but the wheel in it, and the lent dependencies."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--quiet"]
    done = subprocess.run(
        [*install, "--no-index", "--no-deps", "--disable-pip-version-check", wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lend(packages)
    return environment / "bin"


def lend(packages: Path) -> None:
    """Link what the tests' own environment has into another, but for weft: an installed one or its checkout."""
    for folder in filter(Path.is_dir, map(Path, site.getsitepackages())):
        for entry in folder.iterdir():
            own = "weft" in entry.name.lower() or entry.suffix == ".pth" or entry.name == "__pycache__"
            if not own and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)


def run(installed: Path, *command: str | Path, cwd: Path, database: str | None = None) -> str:
    """Run a program of the environment, with nothing of the tests' in its surroundings; what it prints."""
    ours = ("PYTHON", "PYTEST", "WEFT")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    if database is not None:
        surroundings["WEFT_DATABASE_URL"] = database
    done = subprocess.run(
        [installed / command[0], *command[1:]], cwd=cwd, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_carries_grammar_and_catalog_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "weft/_data/grammar/weft.lark" in names
    catalog = {path for path in names if path.startswith("weft/_data/catalog/") and path.endswith(".py")}
    in_checkout = {
        f"weft/_data/{path.relative_to(ROOT)}"
        for path in (ROOT / "catalog").rglob("*.py")
        if not path.name.startswith("test_") and path.name != "conftest.py"
    }
    assert catalog == in_checkout != set()
    assert [path for path in names if "test_" in path or "conftest" in path or "__pycache__" in path] == []
    assert {path.split("/")[0] for path in names if ".dist-info" not in path} == {"weft"}
    assert any(path.endswith(".sql") for path in names)
    assert {"weft/web/templates/form.html", "weft/web/static/style.css"} <= set(names)
    assert "weft/py.typed" in names
    assert any(path.endswith("licenses/LICENSE") for path in names)


def test_the_installed_weft_is_the_wheels(installed: Path, tmp_path: Path) -> None:
    ask = "import weft.data as data; print(data.__file__, data.data_folder('catalog'))"
    where = run(installed, "python", "-c", ask, cwd=tmp_path)
    module, catalog = where.split()
    assert Path(module).is_relative_to(installed.parent)
    assert Path(catalog).is_relative_to(installed.parent)


def test_an_example_runs_outside_the_checkout(installed: Path, tmp_path: Path, empty_database_url: str) -> None:
    shutil.copytree(ROOT / "examples" / "hello", tmp_path / "hello")
    printed = run(installed, "weft", "run", "hello", cwd=tmp_path, database=empty_database_url)
    assert "ello" in printed
    listed = run(installed, "weft", "executions", cwd=tmp_path, database=empty_database_url)
    assert "completed" in listed
