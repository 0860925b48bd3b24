"""`weft run`, from start to exit status."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.cli.weft_process import COMMAND, Weft, environment, said, until


def test_what_debug_shows_is_printed_and_nothing_else(weft: Weft):
    done = weft("run", "main.weft")
    assert (done.status, done.stdout, done.stderr) == (0, "hello\n", "")


def test_a_folder_is_its_main_program(weft: Weft):
    assert weft("run", ".").ok().stdout == "hello\n"
    weft.write("src/main.weft", 'from_src = Show { data: "src" }')
    assert weft("run", ".").ok().stdout == "src\n"


def test_from_another_folder_the_project_of_the_file_counts(weft: Weft, tmp_path_factory):
    elsewhere = Weft(weft.url, tmp_path_factory.mktemp("elsewhere"))
    assert elsewhere("run", str(weft.folder / "main.weft")).ok().stdout == "hello\n"
    [row] = weft("executions", "--json").values
    assert (row["project"], row["project_name"], row["entry"]) == ("demo-id", "demo", "main.weft")


def test_a_run_that_fails_says_where_and_ends_the_rest(weft: Weft):
    done = weft("run", "fails.weft")
    assert done.status == 1
    assert done.stdout == "hello\n"
    assert "failed bad: it went boom" in done.stderr
    assert "error: " in done.stderr and "hint: weft events " in done.stderr


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_fault_b77_each_ending_has_its_own_exit_status(weft: Weft, json: tuple[str, ...]):
    weft.write("broken.weft", "a = Nothing { }")
    assert weft("run", "main.weft", *json).status == 0
    assert weft("run", "fails.weft", *json).status == 1
    assert weft("run", "main.weft", "--nonsense", *json).status == 2
    assert weft("run", "holds.weft", "--deadline", "300ms", *json).status == 3
    assert weft("run", "broken.weft", *json).status == 4
    assert weft("run", "missing.weft", *json).status == 5
    assert weft("run", "main.weft", "--database-url", "postgresql://127.0.0.1:1/x", *json).status == 7


def test_json_is_one_value_a_line_and_nothing_else(weft: Weft):
    weft.write("nodes/loud.py", 'print("a node file that prints")\n')
    shown, end = weft("run", "main.weft", "--json").ok().values
    assert shown == {"run": end["run"], "kind": "log_line", "node": "show", "level": "debug", "text": "hello"}
    assert end == {"run": end["run"], "status": "completed", "error": None, "reason": None}
    failed = weft("run", "fails.weft", "--json")
    assert failed.values[-1]["status"] == "failed"
    assert "it went boom" in failed.values[-1]["error"]


def test_a_deadline_cancels_with_its_reason(weft: Weft):
    done = weft("run", "holds.weft", "--deadline", "200ms")
    assert done.status == 3
    assert any(line.startswith("cancelled: ") for line in done.stderr.splitlines()), done.stderr
    [row] = weft("executions", "--json").values
    assert row["status"] == "cancelled" and row["reason"] in done.stderr


def test_tags_are_made_legal_and_written_at_the_start(weft: Weft):
    weft("run", "main.weft", "--tag", "zebra", "--tag", "+33 6 12", "--tag", "apple", "--tag", "zebra").ok()
    [row] = weft("executions", "--json").values
    assert row["tags"] == ["zebra", "_33_6_12-9df142046f300e74", "apple"]
    refused = weft("run", "main.weft", "--tag", "")
    assert refused.status == 2 and "tag" in refused.stderr


def test_a_part_of_the_program(weft: Weft):
    assert weft("run", "fails.weft", "--target", "beside").ok().stdout == "hello\n"
    assert weft("run", "main.weft", "--before", "show").ok().stdout == ""
    assert weft("run", "main.weft", "--from", 'show={"data": "by hand"}').ok().stdout == "by hand\n"
    assert weft("run", "main.weft", "--emit", 'hello={"value": "given"}').ok().stdout == "given\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "shwo"), "shwo"),
        (("--from", "show"), "is not NODE=JSON"),
        (("--emit", "hello={"), "not JSON"),
        (("--deadline", "soon"), "not a duration"),
        (("--tag",), "requires an argument"),
        (("--tagg", "x"), "No such option"),
        (("extra",), "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(weft: Weft, arguments: tuple[str, ...], message: str):
    done = weft("run", "main.weft", *arguments)
    assert done.status == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert weft("executions").ok().stdout == ""


def test_detached_it_is_only_queued_and_says_who_runs_it(weft: Weft):
    done = weft("run", "main.weft", "--detach", "--tag", "later")
    run = done.ok().stdout.strip()
    assert "saved; nothing runs it until weft worker or weft serve is started" in done.stderr
    assert weft.status(run) == "queued"
    with weft.started("worker") as worker:
        line = said(worker, "worker .* serves demo")
        number = line.split()[1]
        until(lambda: weft.status(run) == "completed")
        # One that holds on: a quick one may have completed before the line is written.
        assert f"worker {number} of demo goes on" in weft("run", "holds.weft", "--detach").stderr
        (weft.folder / "release").touch()


def test_ctrl_c_gives_the_run_back_and_says_what_goes_on(weft: Weft):
    with weft.started("run", "holds.weft") as process:
        until((weft.folder / "begun").exists)
        process.send_signal(signal.SIGINT)
        # The body may use its grace time; a second Ctrl-C does not wait for it.
        said(process, "interrupted")
        (weft.folder / "release").touch()
        _, stderr = process.communicate(timeout=30)
    assert process.returncode in (0, 130), stderr
    [row] = weft("executions", "--json").values
    if process.returncode == 130:
        assert "saved; nothing runs it until weft worker or weft serve is started" in stderr
        assert row["status"] == "queued"
        with weft.started("worker"):
            until(lambda: weft.status(row["run"]) == "completed")


def test_a_second_ctrl_c_ends_at_once_and_nothing_is_lost(weft: Weft):
    with weft.started("run", "holds.weft") as process:
        until((weft.folder / "begun").exists)
        process.send_signal(signal.SIGINT)
        said(process, "interrupted")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=5) == 130
    [row] = weft("executions", "--json").values
    assert row["status"] in ("running", "queued")
    (weft.folder / "release").touch()
    with weft.started("worker"):
        until(lambda: weft.status(row["run"]) == "completed")


def test_a_reader_that_leaves_is_no_error(weft: Weft):
    weft.write("many.weft", "\n".join(f'n{number} = Show {{ data: "{"x" * 5000}" }}' for number in range(60)))
    script = f"{' '.join(COMMAND)} run many.weft | head -c 10; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=weft.folder,
        env=environment(weft.url),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "xxxxxxxxxx0\n"
    assert done.stderr == ""
    [row] = weft("executions", "--json").values
    assert row["status"] == "completed"
