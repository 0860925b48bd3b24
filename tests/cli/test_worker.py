"""`weft worker`: whose runs it claims, and how it goes."""

from __future__ import annotations

import json
import signal

from tests.cli.weft_process import Weft, said, until


def test_it_runs_what_is_queued_in_its_own_project_alone(weft: Weft, tmp_path_factory):
    other = Weft(weft.url, tmp_path_factory.mktemp("other"))
    other.write("weft.toml", '[project]\nid = "other"\n')
    other.write("nodes/steps.py", (weft.folder / "nodes/steps.py").read_text())
    other.write("main.weft", (weft.folder / "main.weft").read_text())
    foreign, mine = other.queue(), weft.queue()
    with weft.started("worker") as worker:
        said(worker, "serves demo")
        until(lambda: weft.status(mine) == "completed")
        assert weft.status(foreign) == "queued"
    with weft.started("worker", "--project", str(weft.folder), "--project", str(other.folder)) as worker:
        assert "other" in said(worker, "serves demo")
        until(lambda: weft.status(foreign) == "completed")


def test_sigterm_lets_bodies_finish_and_gives_the_rest_back(weft: Weft):
    run = weft.queue("holds.weft")
    with weft.started("worker") as worker:
        until((weft.folder / "begun").exists)
        worker.send_signal(signal.SIGTERM)
        said(worker, "draining")
        (weft.folder / "release").touch()
        assert worker.wait(timeout=30) == 0
    assert weft.status(run) in ("queued", "completed")
    kinds = [event["kind"] for event in weft("events", run, "--json").values]
    assert "node_completed" in kinds and "node_resumed" not in kinds
    with weft.started("worker"):
        until(lambda: weft.status(run) == "completed")


def test_a_second_sigterm_ends_it_at_once_and_another_takes_over(weft: Weft):
    run = weft.queue("holds.weft")
    with weft.started("worker") as worker:
        until((weft.folder / "begun").exists)
        worker.send_signal(signal.SIGTERM)
        said(worker, "draining")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=5) == 130
    (weft.folder / "release").touch()
    with weft.started("worker"):
        until(lambda: weft.status(run) == "completed")


def test_json_says_who_it_is(weft: Weft):
    with weft.started("worker", "--json", "--concurrency", "2") as worker:
        assert worker.stdout is not None
        told = json.loads(worker.stdout.readline())
    assert told["projects"] == ["demo-id"] and told["worker"] > 0


def test_a_project_that_is_not_there(weft: Weft):
    done = weft("worker", "--project", "nowhere")
    assert done.status == 5 and "nowhere does not exist" in done.stderr
