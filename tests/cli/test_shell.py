"""The shell around every command: help, versions, terminals, completion."""

from __future__ import annotations

import os
import re
import subprocess

import pexpect

from tests.cli.weft_process import COMMAND, Weft, environment


def on_a_terminal(weft: Weft, *arguments: str, **more: str) -> tuple[str, int]:
    """What a person sees, and the exit status."""
    terminal = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *arguments],
        cwd=str(weft.folder),
        env=environment(weft.url, **more),
        timeout=60,
        dimensions=(24, 40),
        encoding="utf-8",
    )
    seen = terminal.read()
    terminal.close()
    return seen, terminal.exitstatus or 0


def test_help(weft: Weft):
    wide = {"COLUMNS": "80"}
    bare = weft(env=wide).ok()
    assert bare.stdout == weft("--help", env=wide).ok().stdout
    names = "run, check, executions, events, logs, follow, stop, worker, nodes, describe-nodes, new, db"
    for command in names.split(", "):
        assert re.search(rf"^  {command} ", bare.stdout, re.MULTILINE)
        assert "Usage: weft" in weft(command, "--help").ok().stdout
    assert "..." not in bare.stdout.split("Commands:")[1]


def test_an_unknown_command(weft: Weft):
    done = weft("runn")
    assert done.status == 2
    assert done.stderr.startswith("error: No such command 'runn'")


def test_a_terminal_gets_colour_and_whole_ids_unless_it_says_no(weft: Weft):
    weft("run", "fails.weft", "--tag", "a" * 60)
    [row] = weft("executions", "--json").values
    coloured, _ = on_a_terminal(weft, "executions")
    assert "\x1b[31m" in coloured
    assert row["run"] in coloured and "a" * 60 in coloured
    plain, _ = on_a_terminal(weft, "executions", NO_COLOR="1")
    assert "\x1b" not in plain and row["run"] in plain


def test_progress_on_a_terminal(weft: Weft):
    (weft.folder / "release").touch()
    seen, status = on_a_terminal(weft, "run", "holds.weft")
    assert status == 0
    assert "released" in seen
    assert re.search(r"completed in \d+\.\d\d s", seen)
    weft.write("skips.weft", 'bad = Boom { text: "x" }\nshow = Show { data: bad.value }')
    seen, status = on_a_terminal(weft, "run", "skips.weft", NO_COLOR="1")
    assert status == 1
    assert "skipped show:" in seen and "error:" in seen


def test_the_status_line_names_what_runs_and_fits_the_terminal(weft: Weft):
    terminal = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "run", "holds.weft"],
        cwd=str(weft.folder),
        env=environment(weft.url, NO_COLOR="1"),
        timeout=30,
        dimensions=(24, 40),
        encoding="utf-8",
    )
    terminal.expect(r"\r\x1b\[K([^\r]*running: hold)")
    assert terminal.match is not None and len(terminal.match[1]) < 40
    (weft.folder / "release").touch()
    terminal.expect_exact("released")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_completion_of_commands_and_options(weft: Weft):
    def completed(words: str) -> str:
        done = subprocess.run(
            COMMAND,
            env=environment(
                weft.url,
                _WEFT_COMPLETE="complete_bash",
                COMP_WORDS=words,
                COMP_CWORD=str(len(words.split(" ")) - 1),
            ),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout

    assert "executions" in completed("weft exec")
    assert "--deadline" in completed("weft run --d")


def test_a_closed_stdout_is_survived(weft: Weft):
    command = f"{' '.join(COMMAND)} executions >&-"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=weft.folder,
        env=environment(weft.url),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_an_encoding_without_the_character_writes_it_out(weft: Weft):
    done = weft("run", "main.weft", "--emit", 'hello={"value": "東"}', env={"PYTHONIOENCODING": "ascii"}).ok()
    assert done.stdout == "\\u6771\n"


def test_warnings_of_other_packages_are_not_shown(weft: Weft):
    environ = {"XDG_RUNTIME_DIR": ""} if "XDG_RUNTIME_DIR" in os.environ else {}
    assert weft("executions", env=environ).ok().stderr == "no runs\n"
