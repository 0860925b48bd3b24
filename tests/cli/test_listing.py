"""`weft executions`, `events` and `logs`: what a person reads and what a script parses."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.weft_process import Weft

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def newest(weft: Weft) -> str:
    return str(weft("executions", "--limit", "1", "--json").ok().values[0]["run"])


def test_fault_b78_json_is_json_and_nothing_is_cut_or_coloured_in_a_pipe(weft: Weft):
    weft("run", "fails.weft", "--tag", "a-tag-that-is-long-" + "x" * 40)
    weft.write("broken.weft", "a = Nothing { }")
    run = newest(weft)
    commands = [
        ("executions",),
        ("events", run),
        ("logs", run),
        ("follow", run),
        ("stop", run),
        ("nodes",),
        ("describe-nodes",),
        ("check", "broken.weft"),
        ("db",),
    ]
    for command in commands:
        machine = weft(*command, "--json")
        assert machine.stdout, command
        assert all(isinstance(value, dict) for value in machine.values), command
        person = weft(*command, env={"COLUMNS": "40"})
        assert person.status == machine.status, command
        assert "\x1b" not in machine.stdout + machine.stderr + person.stdout + person.stderr, command
    [line] = weft("executions", env={"COLUMNS": "40"}).stdout.splitlines()
    assert run in line and "x" * 40 in line and "…" not in line


def test_race_64_a_row_ends_with_the_tags_in_the_order_claimed(weft: Weft):
    weft("run", "main.weft", "--tag", "zebra", "--tag", "apple").ok()
    weft("run", "fails.weft")
    newer, older = weft("executions").ok().stdout.splitlines()
    assert re.fullmatch(rf"{ID}  failed     {INSTANT}  fails\.weft  demo", newer)
    assert re.fullmatch(rf"{ID}  completed  {INSTANT}  main\.weft   demo  zebra,apple", older)


def test_filters(weft: Weft):
    weft("run", "main.weft", "--tag", "t").ok()
    weft("run", "fails.weft")

    def entries(*filters: str) -> list[str]:
        return [row["entry"] for row in weft("executions", "--json", *filters).ok().values]

    assert entries("--status", "failed") == ["fails.weft"]
    assert entries("--status", "failed", "--status", "completed") == ["fails.weft", "main.weft"]
    assert entries("--tag", "t") == ["main.weft"]
    assert entries("--node", "bad") == ["fails.weft"]
    assert entries("--since", "1h", "--limit", "1", "--offset", "1") == ["main.weft"]
    assert entries("--since", "2100-01-01") == []
    assert entries("--project", "demo") == entries("--project", "demo-id") == ["fails.weft", "main.weft"]


@pytest.mark.parametrize(
    ("filters", "status", "words"),
    [
        (("--status", "complete"), 2, ["'complete' is no status", "queued, running"]),
        (("--status", "faled"), 2, ["did you mean failed?"]),
        (("--project", "nobody"), 5, ["no project 'nobody'", "demo"]),
        (("--since", "yesterday"), 2, ["--since 'yesterday'"]),
        (("--limit", "0"), 2, ["--limit"]),
        (("--limit", "many"), 2, ["--limit"]),
    ],
)
def test_a_bad_filter_is_one_message(weft: Weft, filters: tuple[str, str], status: int, words: list[str]):
    weft.queue()
    done = weft("executions", *filters)
    assert done.status == status
    assert all(word in done.stderr for word in words), done.stderr
    assert done.stdout == ""


def test_a_runs_events_one_line_each(weft: Weft):
    weft("run", "main.weft", "--tag", "t").ok()
    lines = weft("events", newest(weft)[-6:]).ok().stdout.splitlines()
    assert all(re.match(r"\[\d{10}\] [a-z_]+ *( |$)", line) for line in lines)
    kinds = [line.split()[1] for line in lines]
    assert kinds[0] == "execution_started" and kinds[-1] == "execution_completed"
    [emitted] = [line for line in lines if "port_emitted" in line]
    assert re.fullmatch(r"\[\d{10}\] port_emitted          hello call=0 port=value value=hello", emitted)
    [tagged] = [line for line in lines if "execution_tagged" in line]
    assert re.fullmatch(r"\[\d{10}\] execution_tagged      tags=t", tagged)


def test_events_by_node_and_kind_and_as_json(weft: Weft):
    weft("run", "main.weft").ok()
    run = newest(weft)
    of_node = weft("events", run, "--node", "hello", "--json").ok().values
    assert {event["node"] for event in of_node} == {"hello"}
    [emitted] = weft("events", run, "--kind", "port_emitted", "--json").ok().values
    assert emitted["value"] == "hello" and re.fullmatch(INSTANT, emitted["at"])
    every = weft("events", run, "--json").ok().values
    assert [event["seq"] for event in every] == list(range(1, len(every) + 1))
    wrong = weft("events", run, "--kind", "node_complete")
    assert wrong.status == 2 and "did you mean node_completed?" in wrong.stderr


def test_race_65_a_long_value_is_cut_between_characters_and_whole_with_full(weft: Weft):
    text = "東京" * 500
    weft("run", "main.weft", "--emit", "hello=" + json.dumps({"value": text})).ok()
    weft("run", "main.weft", "--from", "show=" + json.dumps({"data": text})).ok()
    run = newest(weft)
    [line] = weft("events", run, "--kind", "log_line").ok().stdout.splitlines()
    assert line.endswith("…") and "�" not in line and len(line) < 200
    assert text in weft("events", run, "--kind", "log_line", "--full").ok().stdout


def test_times_as_dates(weft: Weft):
    run = weft.queue()
    assert re.match(rf"\[{INSTANT}\] ", weft("events", run, "--utc").ok().stdout)
    local = weft("events", run, "--local", env={"TZ": "Asia/Kolkata"}).ok().stdout
    assert re.match(r"\[[^]]+\+05:30\] ", local)
    assert weft("events", run, "--utc", "--local").status == 2


def test_race_63_an_unknown_cost_is_no_zero(weft: Weft):
    weft.write("meter.weft", 'm = Meter { text: "x" }')
    weft("run", "meter.weft").ok()
    logs = weft("logs").ok().stdout
    assert "cost m: known 0.25" in logs
    assert "cost m: nobody-knows unknown" in logs
    assert "warning m: careful" in logs
    costs = [value for value in weft("logs", "--json").values if value["kind"] == "cost_reported"]
    assert [cost.get("amount") for cost in costs] == [0.25, None]


def test_logs_show_failures_and_how_it_ended(weft: Weft):
    weft("run", "fails.weft")
    logs = weft("logs").ok()
    assert re.search(rf"^{INSTANT} debug beside: hello$", logs.stdout, re.MULTILINE)
    assert re.search(rf"^{INSTANT} failed bad: it went boom", logs.stdout, re.MULTILINE)
    assert re.search(rf"^{INSTANT} failed: .*boom", logs.stdout, re.MULTILINE)
    assert newest(weft) in logs.stderr


def test_logs_without_a_run(weft: Weft):
    done = weft("logs")
    assert done.status == 5 and "no run yet" in done.stderr


def test_pieces_of_ids(weft: Weft):
    runs = [weft.queue(), weft.queue()]
    assert weft("events", runs[0][-4:]).status in (0, 5)
    assert weft("events", runs[0][-12:]).status == 0
    ambiguous = weft("events", runs[0][:6])
    assert ambiguous.status == 5
    assert all(run in ambiguous.stderr for run in runs)
    assert weft("events", "ab").status == 2
    assert weft("events", "not-an-id").status == 2
    missing = weft("events", "00000000-0000-7000-8000-000000000000")
    assert missing.status == 5 and "Traceback" not in missing.stderr


def test_stored_text_cannot_move_the_cursor(weft: Weft):
    weft("run", "main.weft", "--from", 'show={"data": "\\u001b[2Jgone\\nnext"}').ok()
    run = newest(weft)
    events = weft("events", run).ok().stdout
    assert "\x1b" not in events and "\\u001b[2Jgone\\nnext" in events
    assert "\x1b" not in weft("logs", run).ok().stdout
