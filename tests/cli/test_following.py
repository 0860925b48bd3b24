"""`weft follow` and `weft events --follow`: a run that another process drives, or nobody."""

from __future__ import annotations

import signal

import pytest

from tests.cli.weft_process import Weft, said, until


def test_fault_b81_a_run_that_nobody_picks_up_says_so_and_times_out(weft: Weft):
    run = weft.queue()
    done = weft("follow", run, "--timeout", "500ms")
    assert done.status == 6
    assert "queued, and no worker of demo is alive: start one with weft worker" in done.stderr
    assert f"run {run} is still queued after 0.5 s" in done.stderr
    assert "saved; nothing runs it until weft worker or weft serve is started" in done.stderr
    timed = weft("follow", run, "--timeout", "500ms", "--json")
    assert timed.status == 6
    assert [value["status"] for value in timed.values] == ["queued"]


def test_a_worker_that_comes_is_told_of_and_the_run_followed_to_its_end(weft: Weft):
    run = weft.queue("holds.weft")
    with weft.started("follow", run) as follow:
        said(follow, "no worker of demo is alive")
        with weft.started("worker"):
            until((weft.folder / "begun").exists)
            (weft.folder / "release").touch()
            stdout, stderr = follow.communicate(timeout=30)
    assert follow.returncode == 0
    assert stdout.endswith(" debug show: released\n")
    assert stderr.endswith("completed\n")


@pytest.mark.parametrize(("program", "status"), [("main.weft", 0), ("fails.weft", 1)])
def test_a_run_that_has_ended_ends_it_at_once_as_it_ended(weft: Weft, program: str, status: int):
    weft("run", program)
    [row] = weft("executions", "--json").values
    assert weft("follow", row["run"]).status == status
    followed = weft("follow", row["run"], "--json")
    assert followed.status == status
    assert followed.values[-1] == row


def test_a_cancelled_run_ends_it_with_3(weft: Weft):
    run = weft.queue()
    weft("stop", run).ok()
    done = weft("follow", run)
    assert done.status == 3
    assert "cancelled: Cancelled by user" in done.stdout


def test_ctrl_c_leaves_the_run_and_says_what_goes_on(weft: Weft):
    run = weft.queue()
    with weft.started("follow", run) as follow:
        said(follow, "no worker")
        follow.send_signal(signal.SIGINT)
        _, stderr = follow.communicate(timeout=30)
    assert follow.returncode == 130
    assert f"run {run} is queued: saved; nothing runs it until weft worker or weft serve is started" in stderr
    assert weft.status(run) == "queued"


def test_events_are_followed_to_the_last(weft: Weft):
    run = weft.queue()
    with weft.started("events", run, "--follow") as events:
        assert events.stdout is not None
        assert "execution_started" in events.stdout.readline()
        weft("stop", run).ok()
        rest, _ = events.communicate(timeout=30)
    assert events.returncode == 0
    assert rest.splitlines()[-1].endswith("reason=Cancelled by user")


def test_a_bad_timeout(weft: Weft):
    assert weft("follow", "abcdef", "--timeout", "never").status == 2
