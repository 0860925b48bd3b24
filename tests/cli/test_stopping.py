"""`weft stop`: by id, by tag, by ids on stdin; what has ended already; who is asked first."""

from __future__ import annotations

import subprocess
import time

import pexpect
import pytest

from tests.cli.weft_process import COMMAND, Weft, environment, said, until


def test_race_33_fault_b01_a_run_that_has_ended_says_so_and_exits_5(weft: Weft):
    weft("run", "main.weft").ok()
    [row] = weft("executions", "--json").values
    before = weft("events", row["run"]).stdout
    done = weft("stop", row["run"][-8:])
    assert done.status == 5
    assert f"run {row['run']} had already ended: completed" in done.stderr
    assert weft("events", row["run"]).stdout == before
    [told] = weft("stop", row["run"], "--json").values
    assert told == {"run": row["run"], "status": "completed", "stopped": False}


def test_a_queued_run_with_no_worker_alive(weft: Weft):
    run = weft.queue()
    done = weft("stop", run).ok()
    assert done.stdout == f"{run}  cancelled\n"
    last = weft("events", run).stdout.splitlines()[-1]
    assert last.endswith("execution_cancelled   reason=Cancelled by user")
    again = weft("stop", run)
    assert again.status == 5
    assert "had already ended: cancelled (Cancelled by user)" in again.stderr


def test_several_of_which_one_has_ended(weft: Weft):
    live, other, over = weft.queue(), weft.queue(), weft.queue()
    weft("stop", over).ok()
    done = weft("stop", live, over, other)
    assert done.status == 5
    assert done.stdout == f"{live}  cancelled\n{other}  cancelled\n"
    assert over in done.stderr


def test_an_unknown_id_stops_nothing(weft: Weft):
    run = weft.queue()
    assert weft("stop", run, "00000000-0000-7000-8000-000000000000").status == 5
    assert weft.status(run) == "queued"


def test_ids_on_stdin(weft: Weft):
    runs = [weft.queue(), weft.queue(), weft.queue()]
    dry = weft("stop", "--dry-run", stdin="\n".join(runs[:2])).ok()
    assert dry.stdout == "".join(f"{run}  queued\n" for run in runs[:2])
    assert "2 live runs would be stopped" in dry.stderr
    weft("stop", "-", stdin=f"{runs[0]} {runs[1]}\n").ok()
    assert [weft.status(run) for run in runs] == ["cancelled", "cancelled", "queued"]
    assert weft("stop", "-", stdin="").status == 2


def test_which_runs_is_never_a_hang(weft: Weft):
    done = weft("stop")
    assert done.status == 2 and "--tag" in done.stderr
    assert weft("stop", "abcd", "--tag", "x").status == 2


def test_by_tag_without_a_terminal_it_must_be_told_yes(weft: Weft):
    runs = [weft.queue("main.weft", "--tag", "user@7") for _ in range(2)]
    spared = weft.queue("main.weft", "--tag", "other")
    refused = weft("stop", "--tag", "user@7")
    assert refused.status == 2 and "--yes" in refused.stderr
    assert weft.status(runs[0]) == "queued"
    dry = weft("stop", "--tag", "user@7", "--dry-run", "--json").ok()
    assert [value["run"] for value in dry.values] == runs
    done = weft("stop", "--tag", "user@7", "--yes", "--json").ok()
    assert {value["run"] for value in done.values} == set(runs)
    [row] = [row for row in weft("executions", "--json").values if row["run"] == runs[0]]
    assert row["reason"] == f"Cancelled by user (tag {row['tags'][0]})"
    assert weft.status(spared) == "queued"
    nothing = weft("stop", "--tag", "user@7", "--yes").ok()
    assert "0 live runs of demo carry the tag" in nothing.stderr


def test_by_tag_another_projects_runs_are_out_of_reach(weft: Weft, tmp_path_factory):
    other = Weft(weft.url, tmp_path_factory.mktemp("other"))
    other.write("weft.toml", '[project]\nid = "other"\n')
    mine = weft.queue("main.weft", "--tag", "shared")
    assert "0 live runs of other" in other("stop", "--tag", "shared", "--yes").ok().stderr
    assert weft.status(mine) == "queued"


@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("y", 0)])
def test_on_a_terminal_it_asks(weft: Weft, answer: str, status: int):
    run = weft.queue("main.weft", "--tag", "t")
    terminal = pexpect.spawn(
        COMMAND[0], [*COMMAND[1:], "stop", "--tag", "t"], cwd=str(weft.folder), env=environment(weft.url), timeout=30
    )
    terminal.expect_exact("1 live run of demo carries the tag t")
    terminal.expect_exact("Stop 1 live run? [y/N] ")
    terminal.sendline(answer)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == status
    assert weft.status(run) == ("cancelled" if answer == "y" else "queued")


def test_fault_b23_a_running_body_is_stopped_within_a_second(weft: Weft):
    with weft.started("run", "holds.weft") as process:
        until((weft.folder / "begun").exists)
        [row] = weft("executions", "--status", "running", "--json").values
        weft("stop", row["run"]).ok()
        stopped_at = time.monotonic()
        _, stderr = process.communicate(timeout=30)
        took = time.monotonic() - stopped_at
    assert process.returncode == 3
    assert "cancelled: Cancelled by user" in stderr
    assert took < 5, f"the body would have gone on for ever, and the process ended {took:.2f} s after the stop"
    kinds = [event["kind"] for event in weft("events", row["run"], "--json").values]
    assert kinds[-2:] == ["node_cancelled", "execution_cancelled"]


def test_fault_b20_from_the_command_line_the_newest_message_wins(weft: Weft):
    with weft.started("worker") as worker:
        said(worker, "worker .* serves")
        for _ in range(3):
            weft("stop", "--tag", "sender", "--yes").ok()
            newest = weft.queue("holds.weft", "--tag", "sender")
        (weft.folder / "release").touch()
        until(lambda: weft.status(newest) == "completed")
    rows = weft("executions", "--json").values
    assert [row["status"] for row in rows] == ["completed", "cancelled", "cancelled"]
    assert {row["reason"] for row in rows[1:]} == {"Cancelled by user (tag sender)"}


def test_fault_b82_500_runs_by_their_tag(weft: Weft):
    script = """
import asyncio
from pathlib import Path
from weft.service.compiling import check, required_program
from weft.service.projects import load_project
from weft.service.opening import open_store
from weft.service.running import start_detached
from weft.settings import load_settings

async def main():
    loaded = load_project(Path("main.weft"))
    program = required_program(check(Path("main.weft"), loaded))
    async with open_store(load_settings(loaded.project)) as store:
        for _ in range(500):
            await start_detached(store, loaded.project, program, tags=["burst"])

asyncio.run(main())
"""
    subprocess.run([COMMAND[0], "-c", script], cwd=weft.folder, env=environment(weft.url), check=True, timeout=100)
    dry = weft("stop", "--tag", "burst", "--dry-run").ok()
    assert len(dry.stdout.splitlines()) == 500
    assert "500 live runs of demo carry the tag burst and would be stopped" in dry.stderr
    assert len(weft("executions", "--status", "queued", "--limit", "1000").stdout.splitlines()) == 500
    done = weft("stop", "--tag", "burst", "--yes").ok()
    assert "500 live runs of demo carry the tag burst" in done.stderr
    assert "stopped 500 live runs; 0 left with the tag burst" in done.stderr
    assert weft("executions", "--status", "queued").ok().stdout == ""
