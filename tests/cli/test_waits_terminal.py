"""`weft run` and `weft answer` on a terminal: forms are asked there, and withdrawn when they are answered elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pexpect

from tests.cli.test_waits import HOOK
from tests.cli.weft_process import COMMAND, Weft, environment, until

EVERY_KIND = """\
text = Text { value: "Dear all" }
ask = HumanQuery {
  title: "Approve the draft"
  description: "Take your time."
  fields: [
    { "kind": "display", "key": "shown" },
    { "kind": "approve_reject", "key": "ok", "approveLabel": "Send it" },
    { "kind": "select", "key": "tone", "options": ["warm", "cold"] },
    { "kind": "multi_select", "key": "who", "options": ["ann", "bob", "cleo"] },
    { "kind": "editable_text_input", "key": "subject" },
    { "kind": "editable_textarea", "key": "body" },
    { "kind": "textarea", "key": "more" },
    { "kind": "text_input", "key": "note", "label": "A note" }
  ]
}
ask.shown = text.value
ask.subject = text.value
ask.body = text.value
show = Show { data: ask.subject }
"""

NOTE = """\
ask = HumanQuery { title: "Say it"  fields: [{ "kind": "text_input", "key": "note" }] }
show = Show { data: ask.note }
"""


@contextmanager
def terminal(weft: Weft, *arguments: str) -> Iterator[pexpect.spawn]:
    process = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *arguments],
        cwd=str(weft.folder),
        env=environment(weft.url, NO_COLOR="1"),
        timeout=30,
        encoding="utf-8",
        dimensions=(40, 100),
    )
    try:
        yield process
    finally:
        process.close(force=True)


def ends(process: pexpect.spawn) -> int:
    process.expect(pexpect.EOF)
    process.close()
    return process.exitstatus


def answers(weft: Weft) -> dict[str, object]:
    run = weft("executions", "--json").values[0]["run"]
    events = weft("events", run, "--json").values
    [value] = [each["value"] for each in events if each["kind"] == "suspension_resolved"]
    return value


def test_every_kind_of_field_is_asked_until_its_answer_is_right(weft: Weft):
    weft.write("parks.weft", EVERY_KIND)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("Approve the draft")
        process.expect_exact("Take your time.")
        process.expect_exact("Dear all")
        process.expect_exact("ok: Send it or reject?")
        process.send("perhaps\r")
        process.expect_exact("neither approve nor reject")
        process.send("send\r")
        process.expect_exact("2) cold")
        process.send("3\r")
        process.expect_exact("is not an option")
        process.send("2\r")
        process.expect_exact("3) cleo")
        process.send("1, cleo\r")
        process.expect_exact("subject")
        process.expect_exact("> Dear all")
        # Home, three to the right, a letter deleted backwards, another put in; then End and more.
        process.send("\x1b[H\x1b[C\x1b[C\x1b[C\x7fé\x1b[Fé!\r")
        process.expect_exact("body (many lines")
        process.expect_exact("> Dear all")
        process.send(",\rsecond line\r\x04")
        process.expect_exact("more (many lines")
        process.send("one\rtwo\x04")
        process.expect_exact("A note")
        process.send("wrong word\x17right\x01\x0bjust this\r")
        process.expect_exact("Deér allé!")
        assert ends(process) == 0
    assert answers(weft) == {
        "ok": True,
        "tone": "cold",
        "who": ["ann", "cleo"],
        "subject": "Deér allé!",
        "body": "Dear all,\nsecond line",
        "more": "one\ntwo",
        "note": "just this",
    }


def test_it_resumes_the_moment_it_is_answered_elsewhere(weft: Weft):
    weft.write("parks.weft", NOTE)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("Say it")
        process.send("half of an ans")
        [form] = weft("forms", "--json").values
        told = weft("answer", form["token"], "note=from elsewhere").ok()
        assert "nothing runs it" not in told.stderr
        process.expect_exact("from elsewhere")
        assert ends(process) == 0
    assert answers(weft) == {"note": "from elsewhere"}


def test_a_stop_elsewhere_withdraws_the_question(weft: Weft):
    weft.write("parks.weft", NOTE)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("Say it")
        [form] = weft("forms", "--json").values
        weft("stop", form["run"]).ok()
        process.expect_exact("cancelled: Cancelled by user")
        assert ends(process) == 3


def test_left_open_it_stays_parked(weft: Weft):
    weft.write("parks.weft", NOTE)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("> ")
        process.send("\x04")
        process.expect_exact("left open: weft answer")
        process.expect_exact("saved; nothing runs it until weft worker or weft serve is started")
        assert ends(process) == 6
    assert len(weft("forms", "--json").values) == 1


def test_fault_b44_ctrl_c_while_it_asks_leaves_the_run_parked(weft: Weft):
    weft.write("parks.weft", NOTE)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("> ")
        process.sendintr()
        process.expect_exact("saved; nothing runs it until weft worker or weft serve is started")
        assert ends(process) == 130
    [form] = weft("forms", "--json").values
    assert weft.status(form["run"]) == "waiting"


def test_what_only_the_outside_can_end_is_not_waited_for_on_a_terminal_either(weft: Weft):
    weft.write("parks.weft", HOOK)
    with terminal(weft, "run", "parks.weft") as process:
        process.expect_exact("hook waits for a request to its webhook")
        assert ends(process) == 6


def test_a_form_of_a_run_below_is_asked_too(weft: Weft):
    weft.write("child.weft", NOTE)
    weft.write("parent.weft", 'child = StartRun { program: "child.weft" }\nend = Show { data: child.status }')
    with terminal(weft, "run", "parent.weft") as process:
        process.expect_exact("Say it")
        process.send("hello child\r")
        process.expect_exact("hello child")
        process.expect_exact("completed")
        assert ends(process) == 0


def test_weft_answer_asks_where_no_answer_is_given(weft: Weft):
    weft.write("parks.weft", NOTE)
    assert weft("run", "parks.weft").status == 6
    run = weft("executions", "--json").values[0]["run"]
    with terminal(weft, "answer", run) as process:
        process.expect_exact("Say it")
        process.send("typed\r")
        process.expect_exact("answered: run")
        assert ends(process) == 0
    assert answers(weft) == {"note": "typed"}
    until(lambda: weft.status(run) == "queued")
