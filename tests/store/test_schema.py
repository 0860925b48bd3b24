"""What the schema promises: keys, locks that say their step, cheap commits, partitions, and a clock."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from importlib import resources

from tests.store.world import LogLine, World, later
from weft.store.migrate import migrations

STATEMENT = re.compile(r"^-- name: (\w+)[ \t]*\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
LOCKS = re.compile(r"FOR (NO KEY )?UPDATE|FOR (KEY )?SHARE|pg_advisory_xact_lock")


async def test_every_key_of_a_projects_data_starts_with_the_project(world: World) -> None:
    async with world.db.connection() as conn:
        keys = await conn.fetch(
            """SELECT t.relname AS table, c.contype, a.attname AS first
               FROM pg_constraint AS c
               JOIN pg_class AS t ON t.oid = c.conrelid
               JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
               WHERE t.relnamespace = 'weft'::regnamespace AND c.contype IN ('p', 'u', 'f')"""
        )
    of_no_project = {"workers", "migrations", "projects", "secret", "tokens"}
    wrong = [tuple(key) for key in keys if key["first"] != "project" and key["table"] not in of_no_project]
    assert wrong == []
    assert {key["table"] for key in keys} > {"runs", "scopes", "ready", "tags", "stops", "notices", "journal", "waits"}


async def test_the_journal_is_bound_to_nothing(world: World) -> None:
    async with world.db.connection() as conn:
        bound = await conn.fetchval(
            "SELECT count(*) FROM pg_constraint"
            " WHERE contype = 'f' AND 'weft.journal'::regclass IN (conrelid, confrelid)"
        )
    assert bound == 0


def test_every_locking_query_says_its_step() -> None:
    silent = []
    found = 0
    for package in ("weft.store", "weft.store.runs"):
        for file in resources.files(package).iterdir():
            if file.name.endswith(".sql"):
                for name, body in STATEMENT.findall(file.read_text(encoding="utf-8")):
                    if LOCKS.search(re.sub(r"--.*", "", body)):
                        found += 1
                        if not re.search(r"-- (?:.*\b)?[Ss]teps? [1-5]", body):
                            silent.append(f"{file.name}: {name}")
    assert found > 10
    assert silent == []


def test_the_order_of_locks_stands_at_the_top_of_the_first_migration() -> None:
    assert "ORDER OF LOCKS" in migrations()[0].text[:300]


async def test_commits_of_a_live_run_are_heap_only(world: World) -> None:
    """No index has a column that a commit changes; so an update touches one page and no index."""
    runs = await world.start(5)
    for _ in range(20):
        await world.append(*(world.write(run, LogLine("n", (), "info", "x")) for run in runs))
    async with world.db.connection() as conn:
        indexes = await conn.fetch("SELECT indexname FROM pg_indexes WHERE schemaname = 'weft' AND tablename = 'runs'")
        assert [row["indexname"] for row in indexes] == ["runs_pkey"]
        await conn.execute("SELECT pg_stat_force_next_flush()")
    async with world.beside() as conn:
        updated = await conn.fetchrow("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'runs'")
    assert updated["n_tup_upd"] == 100
    assert updated["n_tup_hot_upd"] > 95


async def test_a_run_goes_to_the_period_of_its_start(world: World, database_url: str) -> None:
    run = await world.start_one()
    async with world.db.connection() as conn:
        partition = await conn.fetchval("SELECT tableoid::regclass::text FROM journal WHERE run = $1", run)
        assert partition == f"journal_{datetime.now(UTC):%Y_%m}"
        count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'weft.journal'::regclass"
        assert await conn.fetchval(count) == 5, "the default, this month and three ahead"
        assert await conn.fetchval("SELECT weft_make_journal_periods()") == 0
    async with later(database_url, timedelta(days=31)) as db, db.connection() as conn:
        assert await conn.fetchval("SELECT weft_make_journal_periods()") >= 1


async def test_rows_that_went_to_the_default_stay_there(world: World, database_url: str) -> None:
    async with later(database_url, timedelta(days=800)) as db, db.connection() as conn:
        late = await conn.fetchval(
            "INSERT INTO journal (project, run, first, count, at, events)"
            " SELECT 99, weft_run_id(), 1, 1, weft_now(), '[{}]' RETURNING tableoid::regclass::text"
        )
        assert late == "journal_default"
        assert await conn.fetchval("SELECT weft_make_journal_periods()") == 3
        await conn.execute("DELETE FROM journal")
        assert await conn.fetchval("SELECT weft_make_journal_periods()") == 1


async def test_ids_are_version_7_and_follow_the_stores_clock(world: World, database_url: str) -> None:
    async with world.db.connection() as conn:
        rows = await conn.fetch(
            "SELECT clock_timestamp() AS before, weft_run_id() AS id, clock_timestamp() AS after"
            " FROM generate_series(1, 2000)"
        )
        assert await conn.fetchval("SELECT abs(extract(epoch FROM weft_now() - clock_timestamp())) < 1")
    ids = [row["id"] for row in rows]
    assert len(set(ids)) == 2000
    assert {(each.version, each.variant) for each in ids} == {(7, "specified in RFC 4122")}
    for row in rows:
        made = datetime.fromtimestamp((row["id"].int >> 80) / 1000, UTC)
        assert row["before"] - timedelta(milliseconds=1) < made <= row["after"]
    in_order = sum(a < b for a, b in itertools.pairwise(ids))
    assert in_order > 1800, "the microsecond stands in the id, so all but those of one microsecond are in order"
    async with later(database_url, timedelta(days=3)) as db, db.connection() as conn:
        ahead = await conn.fetchval("SELECT weft_now() - clock_timestamp()")
        assert timedelta(days=2, hours=23) < ahead < timedelta(days=3, hours=1)
        assert await conn.fetchval("SELECT weft_run_id()") > max(ids)
