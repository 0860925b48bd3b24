"""The examples, run as their first lines say."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.cli.weft_process import ROOT, Weft, environment, until

EXAMPLES = ROOT / "examples"


@pytest.fixture
def weft(database_url: str) -> Weft:
    return Weft(database_url, ROOT)


def python(folder: Path, url: str | None, *arguments: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(url, **surroundings),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_every_example_compiles_without_a_warning(weft: Weft) -> None:
    programs = [str(path) for path in sorted(EXAMPLES.rglob("*.weft"))]
    assert len(programs) >= 3
    checked = weft("check", *programs).ok()
    assert checked.stdout + checked.stderr == f"{len(programs)} programs: 0 errors, 0 warnings\n"


def test_hello(weft: Weft) -> None:
    ran = weft("run", "examples/hello").ok()
    assert sorted(ran.stdout.splitlines()) == ["(10 letters, which is not many)", "Hello world!"]
    assert ran.stderr == ""


def test_custom_node(weft: Weft) -> None:
    assert weft("run", "examples/custom-node").ok().stdout == "Hello Ada, you are user_7.\n"
    [row] = weft("executions", "--json").ok().values
    assert row["tags"] == ["user_7"]


@pytest.mark.parametrize(("example", "tests"), [("custom-node", 4), ("approval", 5), ("three-day-wait", 2)])
def test_their_own_tests_pass(example: str, tests: int, server_folder: Path) -> None:
    installed = any(each.value == "weft.testing.plugin" for each in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "weft.testing.plugin")
    # What tests whole programs starts the embedded server; here not the one of whoever runs this.
    ran = python(EXAMPLES / example, None, "-m", "pytest", "-q", *plugin, WEFT_DATA_FOLDER=str(server_folder))
    assert ran.returncode == 0, ran.stdout
    assert f"{tests} passed" in ran.stdout
    assert server_folder.exists() and (example == "custom-node" or any(server_folder.iterdir()))


def test_approval_as_the_readme_tells_it(weft: Weft) -> None:
    """A run that nobody is there to answer, its form, an answer, and a worker that goes on with it."""
    parked = weft("run", "examples/approval")
    assert parked.status == 6
    assert "first waits for the form “An answer to a customer”: weft answer" in parked.stderr
    [form] = weft("forms", "--json").ok().values
    assert "waits for the form" in weft("why", form["run"]).ok().stdout
    weft("answer", form["run"], "verdict=approve", "answer=Gladly.").ok()
    with weft.started("worker", "--project", "examples/approval"):
        until(lambda: weft.status(form["run"]) == "completed")
    assert "Gladly." in weft("logs", form["run"]).ok().stdout


def test_three_day_wait_as_the_readme_tells_it(weft: Weft) -> None:
    run = weft("run", "examples/three-day-wait", "--detach").ok().stdout.strip()
    with weft.started("worker", "--project", "examples/three-day-wait"):
        until(lambda: weft.status(run) == "waiting")
        assert "delivered waits for a timer" in weft("why", run).ok().stdout
        weft("wake", run, "delivered").ok()
        until(lambda: weft.status(run) == "completed")
    assert "Dear Ada, is everything as you wished?" in weft("logs", run).ok().stdout


def test_the_newest_of_three_messages_wins(weft: Weft) -> None:
    ran = python(ROOT, weft.url, "examples/newest-wins/demo.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = weft("executions", "--json").ok().values
    assert [row["status"] for row in rows] == ["completed", "cancelled", "cancelled"]
    assert "execution_cancelled   reason=Stopped by execution " in ran.stdout
    assert "Two runs were stopped by their sender's tag; the newest answered." in ran.stdout


def test_newest_wins_answers_a_message_that_comes_alone(weft: Weft) -> None:
    ran = weft("run", "examples/newest-wins").ok()
    assert ran.stdout == "You wrote “Are you open on Sunday?” - consider it done.\n"


def test_the_programs_of_the_readme(weft: Weft, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    said = []
    for program in re.findall(r"^(?P<fence>`{3,})weft\n(?P<text>.*?)^(?P=fence)$", readme, re.M | re.S):
        (tmp_path / "main.weft").write_text(program[1], "utf-8")
        said.append(weft("run", str(tmp_path)).ok().stdout)
    assert said == ["That is 108.0 for you.\n", "You asked: Are you open on Sunday?\n"]
