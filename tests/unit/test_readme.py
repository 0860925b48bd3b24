"""The README says only what is true: its programs compile, its nodes load, its commands are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer.main

from weft.cli.app import app
from weft.cli.commands.new import new
from weft.cli.shell import CANCELLED, COMPLETED, FAILED, INTERRUPTED, NOT_ENDED, NOT_FOUND
from weft.errors import DoesNotCompile, StoreUnreachable, UsageError
from weft.lang.compile import compile_source
from weft.lang.diagnostics import Source
from weft.nodes.registry import Registry
from weft.settings import load_settings, project_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.M | re.S)


def blocks(language: str) -> list[str]:
    return [found["text"] for found in _BLOCK.finditer(README) if found["language"] == language]


def section(title: str) -> str:
    return README.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


class NoFiles:
    def read(self, path: str) -> str:
        raise FileNotFoundError(path)


def test_its_blocks_are_of_kinds_that_are_looked_at_here() -> None:
    assert {found["language"] for found in _BLOCK.finditer(README)} == {"weft", "python", "console", "toml", ""}


@pytest.mark.parametrize("program", blocks("weft"), ids=lambda text: text.splitlines()[0][:30])
def test_its_programs_compile(program: str) -> None:
    compiled = compile_source(Source("README.weft", program), Registry.load(), NoFiles())
    assert compiled.diagnostics == []


def test_its_nodes_load_and_its_tests_pass(tmp_path: Path, server_folder: Path) -> None:
    """In the project that `weft new` makes, as its reader has it."""
    shop = tmp_path / "shop"
    new(str(shop), json=False)
    names = ("nodes/discount.py", "nodes/shout.py", "tests/test_nodes.py", "tests/test_program.py")
    for name, text in zip(names, blocks("python"), strict=True):
        (shop / name).write_text(text, "utf-8")

    registry = Registry.load([shop / "nodes"])
    assert registry.problems == []
    assert {"Discount", "Shout"} <= set(registry.names())

    installed = any(each.value == "weft.testing.plugin" for each in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "weft.testing.plugin")
    ran = subprocess.run(
        [Path(sys.executable).parent / "pytest", "-q", *plugin],
        cwd=shop,
        env=os.environ | {"PYTHONPATH": str(ROOT), "WEFT_DATA_FOLDER": str(server_folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout, "with the one that was there"


def test_its_table_of_nodes_has_them_all_and_no_other() -> None:
    rows = [line.split("|")[1] for line in section("The nodes").splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == Registry.load().names()


def test_its_commands_and_their_options_are_there() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    code = "\n".join([*re.findall(r"`([^`\n]+)`", README), *blocks("console")])
    told = re.findall(r"^weft ([a-z-]+)(.*)$", code, re.M)
    assert len(told) > 10
    assert {name for name, _ in told} <= commands.keys()
    for name, rest in told:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, name
    table = " ".join(line.split("|")[1] for line in section("Commands").splitlines() if line.startswith("| `weft"))
    named = {*re.findall(r"weft ([a-z-]+)", table), *re.findall(r"`([a-z-]+)[ `]", table)} - {"weft"}
    assert named == commands.keys()


def test_its_exit_codes_are_those_of_the_commands() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", section("Commands"), re.M)] == sorted(
        [
            COMPLETED,
            FAILED,
            UsageError.exit_status,
            CANCELLED,
            DoesNotCompile.exit_status,
            NOT_FOUND,
            NOT_ENDED,
            StoreUnreachable.exit_status,
            INTERRUPTED,
        ]
    )


def test_its_settings_are_read(tmp_path: Path) -> None:
    [settings] = blocks("toml")
    (tmp_path / "weft.toml").write_text(settings, "utf-8")
    project = project_of(tmp_path)
    assert (project.id, project.name) == ("k3x9m2ab", "shop")
    assert load_settings(project, environment={}).database_url == "postgresql://user:password@host/weft"


def test_its_links_to_the_repository_lead_somewhere() -> None:
    for name in re.findall(r"`?(examples/[a-z-]+)`?", README):
        assert (ROOT / name).is_dir(), name
    targets = re.findall(r"\bmake (\w+)", "\n".join(blocks("console")))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [name for name in targets if not re.search(rf"^{name}\b.*:", makefile, re.M)] == []


def test_its_addresses_are_those_of_the_door() -> None:
    from weft.web.api.routes import ENDPOINTS

    asked = re.findall(r"^\$ curl (?:-N )?(?:-X (\w+) )?localhost:8080(/[^\s?]*)", "\n".join(blocks("console")), re.M)
    assert len(asked) > 5
    described = {(each.method, re.sub(r"{\w+}", "*", each.path)) for each in ENDPOINTS}
    for method, path in asked:
        assert (method or "GET", re.sub(r"0198…|(?<=/tags/)\w+", "*", path)) in described, path
    assert set(re.findall(r"`(/[a-z.]+)`", section("Over HTTP"))) <= {each.path for each in ENDPOINTS}


def test_its_rights_are_those_of_tokens() -> None:
    from weft.service.upkeep import RIGHTS

    [listed] = re.findall(r"some of the rights (.*?), for one\s", section("Over HTTP"), re.S)
    assert tuple(re.findall(r"`(\w+)`", listed)) == RIGHTS


def test_fault_b24_it_says_that_nothing_cleans_up_after_a_parked_run() -> None:
    text = " ".join(README.split())
    assert "A run that was parked has no process, so nothing of yours is called when it is stopped" in text
