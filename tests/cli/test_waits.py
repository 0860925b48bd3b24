"""Runs that wait, from the command line and without a terminal: forms, answers, timers, waking, why."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.weft_process import Done, Weft, said, until

ASK = """\
ask = HumanQuery {
  title: "Approve the draft"
  fields: [
    { "kind": "approve_reject", "key": "ok" },
    { "kind": "select", "key": "tone", "options": ["warm", "cold"] },
    { "kind": "multi_select", "key": "for", "options": ["ann", "bob"] },
    { "kind": "text_input", "key": "note" }
  ]
}
show = Show { data: ask.note }
good = Show { data: ask.ok_approved }
"""

TWO = """\
one = HumanQuery { title: "First"   fields: [{ "kind": "text_input", "key": "text" }] }
two = HumanQuery { title: "Second"  fields: [{ "kind": "text_input", "key": "text" }] }
show = Show { data: two.text }
"""

NAP = """\
nap = Wait { seconds: SECONDS }
show = Show { data: nap.wokeAt }
"""

HOOK = """\
hook = WaitForWebhook -> (body: String)
show = Show { data: hook.body }
"""


def parked(weft: Weft, text: str, *arguments: str) -> tuple[str, Done]:
    """A run that waits with nobody to answer: its id, and what `weft run` said."""
    weft.write("parks.weft", text)
    done = weft("run", "parks.weft", *arguments)
    assert done.status == 6, done
    [row] = weft("executions", "--status", "waiting", "--limit", "1", "--json").values
    return row["run"], done


def form_of(weft: Weft, run: str) -> dict[str, Any]:
    [form] = [each for each in weft("forms", "--json").values if each["run"] == run]
    return form


def finish(weft: Weft, run: str) -> None:
    """Let a worker go on with the run to its end."""
    with weft.started("worker"):
        until(lambda: weft.status(run) not in ("queued", "running", "waiting"))


def test_fault_b36_a_run_that_parks_says_so_in_one_plain_line_and_exits_6(weft: Weft):
    run, done = parked(weft, ASK)
    token = form_of(weft, run)["token"]
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line == (
        f"run {run}: ask waits for the form “Approve the draft”: weft answer {token} ok=approve|reject tone=warm|cold "
        f"for=ann,bob note=…, or /f/{token} of weft serve; "
        "saved; nothing runs it until weft worker or weft serve is started"
    )
    assert not {"error", "Traceback", "warning"} & set(line.split())


def test_json_says_that_it_waits(weft: Weft):
    weft.write("parks.weft", ASK)
    done = weft("run", "parks.weft", "--json")
    assert (done.status, done.values[-1]["status"]) == (6, "waiting")


def test_a_form_is_listed_answered_once_and_the_run_goes_on(weft: Weft):
    run, _ = parked(weft, ASK)
    form = form_of(weft, run)
    assert (form["node"], form["title"], form["project"], form["due"]) == ("ask", "Approve the draft", "demo-id", None)
    assert form["token"] in weft("forms").ok().stdout
    assert weft("forms", "--project", "demo").ok().stdout and weft("forms", "--project", "nobody").status == 5

    answered = weft("answer", form["token"], "ok=Yes", "tone=WARM", "for=ann,bob", "note=a=b").ok()
    goes_on = "saved; nothing runs it until weft worker or weft serve is started"
    assert f"answered: run {run} is queued; {goes_on}" in answered.stderr
    assert weft("forms").ok().stdout == ""

    again = weft("answer", form["token"], "ok=no", "tone=cold", "for=", "note=late")
    assert again.status == 5 and "this was answered at" in again.stderr
    finish(weft, run)
    assert weft.status(run) == "completed"
    [resolved] = [each for each in weft("events", run, "--json").values if each["kind"] == "suspension_resolved"]
    assert resolved["value"] == {"ok": True, "tone": "warm", "for": ["ann", "bob"], "note": "a=b"}
    assert resolved["by"]
    assert weft("answer", form["token"], "ok=no").status == 5


def test_an_answer_that_does_not_fit_is_refused_by_field_and_the_form_stays(weft: Weft):
    run, _ = parked(weft, ASK)
    token = form_of(weft, run)["token"]
    done = weft("answer", token, "ok=maybe", "tone=loud", "nte=x")
    assert done.status == 2
    for line in ("ok: “maybe” is neither approve nor reject", "tone: “loud” is not an option", "did you mean `note`"):
        assert line in done.stderr
    assert weft("answer", token).status == 2, "without a terminal nobody is asked"
    assert weft("answer", token, "note").status == 2
    assert form_of(weft, run)["token"] == token


@pytest.mark.parametrize("text", ["[1]", "{", "\udcff", '{"ok": 1}'])
def test_answers_on_stdin_that_are_no_answers(weft: Weft, text: str):
    run, _ = parked(weft, ASK)
    done = weft("answer", run, "-", stdin=text if text != "\udcff" else "ÿ")
    assert done.status == 2 and "Traceback" not in done.stderr


def test_answers_come_as_json_on_stdin(weft: Weft):
    run, _ = parked(weft, ASK)
    given = {"ok": False, "tone": "cold", "for": [], "note": "two\nlines"}
    weft("answer", run[-8:], "-", stdin=json.dumps(given)).ok()
    [resolved] = [each for each in weft("events", run, "--json").values if each["kind"] == "suspension_resolved"]
    assert resolved["value"] == given


def test_a_skipped_form_closes_all_ports(weft: Weft):
    run, _ = parked(weft, ASK)
    assert weft("answer", run, "--skip", "note=x").status == 2
    assert "skipped" in weft("answer", run, "--skip").ok().stderr
    finish(weft, run)
    assert weft.status(run) == "completed"
    kinds = {(each["node"], each["kind"]) for each in weft("events", run, "--json").values if "node" in each}
    assert {("ask", "node_skipped"), ("show", "node_skipped"), ("good", "node_skipped")} <= kinds


def test_fault_b28_with_two_forms_open_each_is_answered_by_its_own_token(weft: Weft):
    run, _ = parked(weft, TWO)
    tokens = {form["title"]: form["token"] for form in weft("forms", "--json").values}
    refused = weft("answer", run, "text=for whom?")
    assert refused.status == 5
    assert all(token in refused.stderr for token in tokens.values())
    weft("answer", tokens["Second"], "text=second").ok()
    [left] = weft("forms", "--json").values
    assert left["title"] == "First"
    weft("answer", run, "text=the only one left").ok()
    finish(weft, run)
    assert weft.status(run) == "completed"


def test_fault_b30_after_a_stop_the_form_is_dead_and_says_who_ended_it(weft: Weft):
    run, _ = parked(weft, ASK)
    token = form_of(weft, run)["token"]
    assert weft("stop", run).ok().stdout == f"{run}  cancelled\n"
    before = weft("events", run).stdout
    assert before.splitlines()[-1].endswith("execution_cancelled   reason=Cancelled by user")
    done = weft("answer", token, "ok=yes", "tone=warm", "for=ann", "note=x")
    assert done.status == 5
    assert f"run {run} was cancelled at" in done.stderr and "Cancelled by user" in done.stderr
    assert weft("events", run).stdout == before
    assert weft("answer", "0" * 64, "a=b").status == 5
    assert "was cancelled at" in weft("why", run).ok().stdout


def test_fault_b34_times_are_kept_to_the_second_and_offsets_heard(weft: Weft):
    now = datetime.now(UTC)
    past = (now - timedelta(minutes=1)).isoformat()
    soon = now + timedelta(seconds=5)
    indian = soon.astimezone(datetime.strptime("+0530", "%z").tzinfo).isoformat()
    weft.write("until.weft", f'a = WaitUntil {{ until: "{past}" }}\nb = WaitUntil {{ until: "{indian}" }}')
    began = time.monotonic()
    done = weft("run", "until.weft").ok()
    assert time.monotonic() - began < 12
    assert datetime.now(UTC) >= soon
    assert "b waits for a timer until" in done.stderr
    weft.write("until.weft", 'a = WaitUntil { until: "2026-01-01T00:00:00" }')
    refused = weft("run", "until.weft")
    assert refused.status == 1 and "no offset" in refused.stderr


def test_a_run_that_waits_only_for_timers_is_followed(weft: Weft):
    weft.write("nap.weft", NAP.replace("SECONDS", "1"))
    done = weft("run", "nap.weft").ok()
    assert "nap waits for a timer until 20" in done.stderr
    assert done.stdout.startswith("20"), "what it shows after the wake is printed"


def test_fault_b33_a_deadline_before_the_timer_ends_the_run_once(weft: Weft):
    weft.write("nap.weft", NAP.replace("SECONDS", "65"))
    began = time.monotonic()
    done = weft("run", "nap.weft", "--deadline", "3s")
    assert done.status == 3 and "Deadline reached" in done.stderr
    assert 3 <= time.monotonic() - began < 10
    [row] = weft("executions", "--json").values
    kinds = [each["kind"] for each in weft("events", row["run"], "--json").values]
    assert kinds[-2:] == ["node_cancelled", "execution_cancelled"] and kinds.count("execution_cancelled") == 1


def test_fault_b44_ctrl_c_leaves_a_waiting_run_parked_and_says_what_goes_on(weft: Weft):
    weft.write("nap.weft", NAP.replace("SECONDS", "2"))
    with weft.started("run", "nap.weft") as process:
        said(process, "nap waits for a timer")
        process.send_signal(signal.SIGINT)
        line = said(process, "is waiting: saved; nothing runs it until weft worker or weft serve is started")
        assert process.wait(timeout=20) == 130
    run = line.split()[1]
    assert weft.status(run) in ("waiting", "queued")
    finish(weft, run)
    assert weft.status(run) == "completed"


def test_with_a_worker_alive_it_is_named(weft: Weft):
    with weft.started("worker") as worker:
        number = said(worker, "serves demo").split()[1]
        weft.write("parks.weft", ASK)
        done = weft("run", "parks.weft")
        assert done.status == 6 and f"worker {number} of demo goes on" in done.stderr
        run = weft("executions", "--json").values[0]["run"]
        assert f"worker {number} of demo is alive" in weft("why", run).stdout
        skipped = weft("answer", run, "--skip").ok().stderr
        assert f"worker {number} of demo goes on" in skipped or "it has completed" in skipped
        until(lambda: weft.status(run) == "completed")


def test_wake_fires_a_timer_now_and_refuses_what_needs_an_answer(weft: Weft):
    weft.write("both.weft", NAP.replace("SECONDS", "3600") + ASK.replace("show =", "show2 ="))
    done = weft("run", "both.weft")
    assert done.status == 6, done
    run = weft("executions", "--json").values[0]["run"]
    refused = weft("wake", run, "ask")
    assert refused.status == 5 and "weft answer" in refused.stderr
    nothing = weft("wake", run, "show")
    assert nothing.status == 5 and "waits for nothing" in nothing.stderr
    assert "woken" in weft("wake", run, "nap").ok().stderr
    assert weft("wake", run, "nap").status == 5
    weft("answer", run, "--skip").ok()
    finish(weft, run)
    assert weft("wake", run, "nap").status == 5
    assert weft.status(run) == "completed"


def test_why_says_what_it_waits_for_what_ends_it_and_what_a_stop_would_do(weft: Weft):
    weft.write("all.weft", NAP.replace("SECONDS", "7200") + HOOK.replace("show =", "seen ="))
    assert weft("run", "all.weft").status == 6
    run = weft("executions", "--json").values[0]["run"]
    [told] = weft("why", run, "--json").values
    waits = {each["node"]: each for each in told["waits"]}
    assert (told["status"], told["workers"]) == ("waiting", [])
    assert waits["hook"]["path"] == f"/w/{waits['hook']['token']}"
    assert waits["nap"]["due"] > waits["nap"]["since"]
    text = weft("why", run).ok().stdout
    for part in (
        "is waiting",
        "hook waits for a request to its webhook, since 20",
        f"POST /w/{waits['hook']['token']}",
    ):
        assert part in text
    for part in (f"weft wake {run} nap", "(in 1 hour 59 minutes)", "no worker of demo is alive", "a stop cancels it"):
        assert part in text
    hook = weft("answer", waits["hook"]["token"], "a=b")
    assert hook.status == 5 and "the token of a webhook, not of a form" in hook.stderr


def test_waiting_runs_are_listed_and_followed(weft: Weft):
    run, _ = parked(weft, ASK)
    assert [each["run"] for each in weft("executions", "--status", "waiting", "--json").values] == [run]
    done = weft("follow", run, "--timeout", "1s")
    assert done.status == 6
    assert f"run {run} is still waiting after 1 s: saved; nothing runs it" in done.stderr
    assert "ask waits for the form “Approve the draft”: weft answer" in done.stderr
    line = next(each for each in weft("events", run).stdout.splitlines() if "node_suspended" in each)
    assert line.split("] ")[1].startswith("node_suspended        ask token=")


def test_a_run_that_is_followed_outlives_a_kill_of_the_whole_database_server(weft: Weft, server_folder: Path):
    (weft.folder / "nap.weft").write_text(
        'a = Wait { seconds: 3 }\nb = Text { _should_flow: a.wokeAt  value: "awake" }\nc = Debug { data: b.value }\n'
    )
    own = {"WEFT_DATABASE_URL": "", "WEFT_DATA_FOLDER": str(server_folder)}
    with weft.started("run", "nap.weft", **own) as process:
        said(process, "waits for a timer")
        for server in psutil.process_iter(["cmdline"]):
            if any(part.startswith(str(server_folder)) for part in server.info["cmdline"] or ()):
                server.kill()
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "awake" in stdout


def test_fault_b45_and_race_43_a_parked_run_goes_on_with_the_program_it_was_started_with(weft: Weft):
    run, _ = parked(weft, TWO.replace("show = Show", "old = Show"))
    weft.write("parks.weft", TWO.replace("show = Show", "new = Show"))
    weft("answer", "--skip", form_of_node(weft, run, "one")).ok()
    weft("answer", form_of_node(weft, run, "two"), "text=hello").ok()
    finish(weft, run)
    nodes = {each.get("node") for each in weft("events", run, "--json").values}
    assert weft.status(run) == "completed" and "old" in nodes and "new" not in nodes


def form_of_node(weft: Weft, run: str, node: str) -> str:
    [form] = [each for each in weft("forms", "--json").values if each["run"] == run and each["node"] == node]
    token: str = form["token"]
    return token
