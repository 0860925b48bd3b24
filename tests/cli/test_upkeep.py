"""`weft clean`, `weft doctor`, `weft token` and `weft test-node`."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.cli.weft_process import Weft, until

PARKS = (
    'ask = HumanQuery { title: "Now?"  fields: [{ "kind": "text_input", "key": "a" }] }\nshow = Show { data: ask.a }'
)


def sql(weft: Weft, *statements: str) -> list[asyncpg.Record]:
    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(weft.url)
        try:
            await connection.execute("SET search_path = weft")
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetch(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(run())


def parked(weft: Weft) -> str:
    weft.write("parks.weft", PARKS)
    assert weft("run", "parks.weft").status == 6
    return weft("executions", "--status", "waiting", "--json").values[0]["run"]


def test_fault_b47_clean_deletes_what_ended_and_never_what_waits(weft: Weft):
    waiting, queued = parked(weft), weft.queue()
    for _ in range(3):
        weft("run", "main.weft").ok()
    dry = weft("clean", "--keep-days", "0", "--dry-run").ok()
    assert dry.stdout.startswith("demo: 3 runs with ") and "would be deleted" in dry.stdout
    assert len(weft("executions", "--json").values) == 5
    assert weft("clean", "--keep-days", "1").ok().stdout == "demo: 0 runs deleted\n"
    [done] = weft("clean", "--keep-days", "0", "--json").ok().values
    assert done == {"project": "demo-id", "deleted": 3}
    assert [row["run"] for row in weft("executions", "--json").values] == [queued, waiting]
    assert {row["run"].hex for row in sql(weft, "SELECT DISTINCT run FROM journal")} == {
        waiting.replace("-", ""),
        queued.replace("-", ""),
    }
    weft("answer", waiting, "a=still there").ok()


def test_fault_b47_five_thousand_ended_runs_go_in_batches_and_fifty_waiting_ones_stay(weft: Weft):
    run = parked(weft)
    sql(
        weft,
        f"CREATE TEMP TABLE template AS SELECT '{run}'::uuid AS id",
        "CREATE TEMP TABLE copies AS SELECT weft_uuid_at("
        "(extract(epoch FROM now() - interval '1 day') * 1000000)::bigint + n,"
        " substr(replace(gen_random_uuid()::text, '-', ''), 17)) AS id FROM generate_series(1, 5000) AS n",
        """INSERT INTO scopes (project, id, depth, ended_at, ended_by)
           SELECT s.project, c.id, 0, now() - interval '1 hour', c.id FROM copies c, scopes s, template t
           WHERE s.id = t.id""",
        """INSERT INTO runs (project, id, program, entry, started_at, ended_at, status, lease, next_seq, open_firings)
           SELECT r.project, c.id, r.program, r.entry, now() - interval '1 day', now() - interval '1 hour', 'completed',
                  1, 2, '[]' FROM copies c, runs r, template t WHERE r.id = t.id""",
        """INSERT INTO journal (project, run, first, count, at, events)
           SELECT r.project, r.id, 1, 1, now(), '[{"kind":"execution_completed"}]'
           FROM runs r WHERE r.ended_at IS NOT NULL""",
        """INSERT INTO tags (project, number, run, live, tag)
           SELECT r.project, nextval('tag_numbers'), r.id, false, 'old' FROM runs r WHERE r.ended_at IS NOT NULL""",
        "SELECT 1",
    )
    assert "5,000 runs" in weft("clean", "--keep-days", "0", "--dry-run").ok().stdout
    assert weft("clean", "--keep-days", "0").ok().stdout == "demo: 5,000 runs deleted\n"
    for table in ("runs", "scopes"):
        assert [str(row["id"]) for row in sql(weft, f"SELECT id FROM {table}")] == [run]
    assert sql(weft, "SELECT FROM tags") == []
    assert {str(row["run"]) for row in sql(weft, "SELECT run FROM journal")} == {run}


def test_clean_is_for_the_current_project_unless_told(weft: Weft, tmp_path_factory: pytest.TempPathFactory):
    weft("run", "main.weft").ok()
    other = Weft(weft.url, tmp_path_factory.mktemp("other"))
    other.write("weft.toml", '[project]\nid = "other"\n')
    assert other("clean", "--keep-days", "0").status == 5
    assert other("clean", "--keep-days", "0", "--project", "demo", "--all").status == 2
    assert other("clean", "--keep-days", "0", "--project", "demo", "--dry-run").ok().stdout.startswith("demo: 1 run ")
    assert other("clean", "--keep-days", "0", "--all").ok().stdout == "demo: 1 run deleted\n"
    missing = other("clean")
    assert missing.status == 2 and "--keep-days" in missing.stderr


def test_doctor_finds_nothing_on_a_sound_database(weft: Weft):
    parked(weft)
    weft("run", "fails.weft")
    weft.queue()
    done = weft("doctor").ok()
    assert (done.stdout, done.stderr) == ("", "all rules hold\n")


def test_doctor_names_each_offending_row_and_what_to_do(weft: Weft):
    run = parked(weft)
    [token] = [each["token"] for each in weft("forms", "--json").values]
    sql(weft, "UPDATE runs SET next_seq = next_seq + 1", "DELETE FROM waits WHERE kind = 'form'", "SELECT 1")
    done = weft("doctor")
    assert done.status == 1
    assert "broken: a waiting run waits for something" in done.stdout
    assert "broken: numbers are dense" in done.stdout
    assert f"run {run} of demo" in done.stdout and f"weft stop {run}" in done.stdout
    found = {each["rule"]: each for each in weft("doctor", "--json").values}
    assert all(each["run"] == run and each["project"] == "demo" and each["remedy"] for each in found.values())
    assert token not in done.stdout


def test_doctor_finds_a_wait_that_its_run_left_behind(weft: Weft):
    run = parked(weft)
    sql(weft, "CREATE TABLE kept AS SELECT * FROM waits", "SELECT 1")
    weft("stop", run).ok()
    sql(weft, "INSERT INTO waits SELECT * FROM kept", "DROP TABLE kept", "SELECT 1")
    [found] = [each for each in weft("doctor", "--json").values if each["rule"] == "nothing waits below an ended scope"]
    assert (found["run"], found["status"]) == (run, "cancelled")
    sql(weft, found["remedy"].partition("row: ")[2], "SELECT 1")
    weft("doctor").ok()


def test_a_token_is_shown_once_listed_without_its_text_and_revoked(weft: Weft):
    minted = weft("token", "mint", "ci", "--right", "answer", "--right", "read").ok()
    text = minted.stdout.strip()
    assert text.startswith("weft_") and "it is shown this once" in minted.stderr and text not in minted.stderr
    [every] = weft("token", "mint", "all of them", "--right", "stop", "--all", "--json").ok().values
    assert (every["project"], every["rights"]) == (None, ["stop"]) and every["token"].startswith("weft_")
    listed = weft("token", "list", "--json").ok()
    assert text not in listed.stdout and every["token"] not in listed.stdout
    assert [(row["name"], row["project"], row["rights"]) for row in listed.values] == [
        ("ci", "demo-id", ["read", "answer"]),
        ("all of them", None, ["stop"]),
    ]
    assert "opens nothing any more" in weft("token", "revoke", "1").ok().stderr
    assert weft("token", "revoke", "1", "--json").ok().values == [{"id": 1, "revoked": False}]
    assert "revoked 20" in weft("token", "list").ok().stdout.splitlines()[0]
    assert weft("token", "revoke", "77").status == 5
    assert weft("token", "mint", "ci").status == 2
    assert weft("token", "mint", "ci", "--right", "everything").status == 2
    assert text not in str(sql(weft, "SELECT * FROM tokens"))


def test_a_nodes_own_tests_are_run(weft: Weft):
    nothing = weft("test-node", "Give")
    assert nothing.status == 5 and "nodes/test_steps.py or tests/test_steps.py" in nothing.stderr
    assert weft("test-node", "Gvie").status == 5
    weft.write("tests/test_steps.py", "def test_good():\n    pass\n")
    good = weft("test-node", "Give", "--", "-q")
    assert good.status == 0 and "1 passed" in good.stdout
    weft.write("nodes/test_steps.py", "def test_bad():\n    assert 0\n")
    bad = weft("test-node", "Give")
    assert bad.status == 1 and "1 failed, 1 passed" in bad.stdout
    assert weft("check", "main.weft").ok()


def test_a_worker_goes_on_with_what_was_kept(weft: Weft):
    run = parked(weft)
    weft("clean", "--keep-days", "0").ok()
    weft("answer", run, "a=b").ok()
    with weft.started("worker"):
        until(lambda: weft.status(run) == "completed")
