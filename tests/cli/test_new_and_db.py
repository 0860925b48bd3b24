"""`weft new` makes a project that works; `weft db` says where the data is and writes it out."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from tests.cli.weft_process import Weft, environment


def test_a_new_project_runs_and_its_test_passes(weft: Weft):
    done = weft("new", "first").ok()
    assert "first/src/main.weft" in done.stdout and "hint: weft run first" in done.stderr
    folder = weft.folder / "first"
    assert weft("run", "first").ok().stdout == "HELLO\n"
    assert weft("check", "first").status == 0
    settings = tomllib.loads((folder / "weft.toml").read_text())
    assert settings["project"]["name"] == "first" and len(settings["project"]["id"]) == 8
    [row] = weft("executions", "--project", "first", "--json").values
    assert row["project"] == settings["project"]["id"]
    installed = any(each.value == "weft.testing.plugin" for each in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "weft.testing.plugin")
    tested = subprocess.run(
        # The command, since `python -m pytest` would put the folder on the path by itself.
        [Path(sys.executable).parent / "pytest", "-q", *plugin, "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment(weft.url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout


def test_two_new_projects_are_two(weft: Weft):
    one, two = weft("new", "a", "--json").ok().values + weft("new", "b", "--json").ok().values
    assert one["id"] != two["id"]
    assert one["files"] == two["files"]


def test_what_is_there_is_never_overwritten(weft: Weft):
    (weft.folder / "empty").mkdir()
    weft("new", "empty").ok()
    done = weft("new", "empty")
    assert done.status == 5 and "is there already and is not empty" in done.stderr
    assert weft("new", "main.weft").status == 5
    assert weft("new", "").status == 2
    assert weft("new", "bad\nname").status == 2


def test_db_says_where_the_data_is(weft: Weft):
    [about] = weft("db", "--json").ok().values
    assert about["embedded"] is False and about["schema"] >= 1 and about["bytes"] > 0
    assert f"weft schema {about['schema']:04}" in weft("db").ok().stdout


def test_migrate(weft: Weft, empty_database_url: str):
    [about] = weft("db", "migrate", "--json", "--database-url", empty_database_url).ok().values
    assert about["schema"] >= 1
    assert weft("executions", "--database-url", empty_database_url).ok().stdout == ""


def test_dump_and_restore(weft: Weft, empty_database_url: str):
    weft("run", "main.weft", "--tag", "kept").ok()
    done = weft("db", "dump", "all.sql").ok()
    assert "wrote all.sql" in done.stderr
    assert not (weft.folder / "all.sql.part").exists()
    assert weft("db", "dump").ok().stdout.startswith("--")
    from weft.store.embedded import tools

    psql = tools.find().bin / "psql"
    subprocess.run(
        [psql, "--quiet", "-v", "ON_ERROR_STOP=1", f"--dbname={empty_database_url}", "-f", "all.sql"],
        cwd=weft.folder,
        check=True,
        timeout=60,
        capture_output=True,
    )
    assert weft("executions", "--database-url", empty_database_url).stdout == weft("executions").stdout


def test_nodes_are_listed_and_described(weft: Weft):
    listed = weft("nodes").ok().stdout
    assert "Give" in listed and "value: String! → value: String" in listed
    rows = {row["type"]: row for row in weft("nodes", "--json").ok().values}
    assert rows["Give"]["project"] is True and rows["Give"]["description"] == "A text."
    [give] = weft("describe-nodes", "Give", "--json").ok().values
    assert give["inputs"] == [{"name": "value", "type": "String", "required": True}]
    unknown = weft("describe-nodes", "Giv")
    assert unknown.status == 5 and "did you mean Give?" in unknown.stderr


def test_check_reports_everything_at_once(weft: Weft):
    weft.write("a.weft", "x = Nothing { }\ny = Nowhere { }")
    weft.write("b.weft", "z = Give { value: ")
    done = weft("check", "a.weft", "b.weft", "missing.weft", "main.weft")
    assert done.status == 4
    assert done.stdout.count("error[") >= 3
    assert "a.weft:2:5: error[unknown-type]" in done.stdout and "  y = Nowhere { }\n      ^^^^^^^" in done.stdout
    assert "missing.weft does not exist" in done.stderr
    found = weft("check", "a.weft", "--json")
    assert found.status == 4
    keys = {"file", "line", "column", "end_line", "end_column", "severity", "slug", "message", "hint"}
    assert all(set(value) == keys for value in found.values)
    assert [(value["line"], value["column"]) for value in found.values] == [(1, 5), (2, 5)]
    everything = weft("check")
    assert everything.status == 4 and "5 programs" in everything.stderr
    assert weft("check", "main.weft").status == 0
