"""The searches that workers make stay cheap when the tables are big: what each reads, on more than 100,000 runs, or
(`--soak`) a million."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from tests.store.world import HASH, World
from weft.store.pool import Connection
from weft.store.runs import journal, runs, scopes, stops, tags, workers
from weft.store.sql import load

ENDED, ENDED_IN_A_SOAK = 120_000, 1_000_000
LIVE = 20_000


def fill(ended: int) -> str:
    return f"""
CREATE TEMP TABLE made AS
    SELECT weft_run_id() AS id, n, n <= {ended} AS ended, n % 50 AS sender FROM generate_series(1, {ended + LIVE}) AS n;
INSERT INTO scopes (project, id, effective_deadline, ended_at, ended_by)
    SELECT $1, id, CASE WHEN n % 10 = 0 THEN weft_now() + interval '1 day' END,
           CASE WHEN ended THEN weft_now() END, CASE WHEN ended THEN id END FROM made;
INSERT INTO runs (project, id, program, entry, started_at, ended_at, status, worker, lease, next_seq, open_firings)
    SELECT $1, id, '{HASH}', 'main', weft_now(), CASE WHEN ended THEN weft_now() END,
           CASE WHEN ended THEN 'completed' WHEN n % 2 = 0 THEN 'queued' ELSE 'running' END,
           CASE WHEN n % 2 = 1 THEN $2::uuid END, n % 2, 1 + ended::integer, '[]' FROM made;
INSERT INTO ready (project, run, worker) SELECT $1, id, CASE WHEN n % 2 = 1 THEN $2::uuid END FROM made WHERE NOT ended;
INSERT INTO tags (project, tag, run, number, live) SELECT $1, 'sender' || sender, id, n, NOT ended FROM made;
INSERT INTO journal (project, run, first, count, at, events)
    SELECT $1, id, 1, 1, weft_now(), '[{{"kind":"execution_completed"}}]' FROM made WHERE ended;
INSERT INTO stops (project, run, node, frames, call, tag, include, reaches_self, cutoff, state, asked_at, due)
    SELECT $1, id, 'stop', '[]', 0, 'sender' || sender, false, false, 1, 'done', weft_now(), weft_now() FROM made
    WHERE n % 4 = 0;
DROP TABLE made;
ANALYZE scopes, runs, ready, tags, journal, stops
"""


@pytest_asyncio.fixture
async def big(database_url: str, soak: bool) -> AsyncIterator[World]:
    """Without the world's own look at the invariants, which reads everything."""
    async with World.open(database_url) as world:
        async with world.db.connection() as conn:
            # Foreign keys need not be checked, row by row, for rows that are made from one list.
            await conn.execute("SET session_replication_role = replica")
            rows = fill(ENDED_IN_A_SOAK if soak else ENDED)
            await conn.execute(rows.replace("$1", str(world.project)).replace("$2", f"'{world.worker}'"))
            await conn.execute("SET session_replication_role = origin")
        yield world


class Explained:
    """A connection that runs each statement and keeps how many rows and pages its plan touched."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.plans: list[dict[str, Any]] = []

    async def fetch(self, statement: str, *args: Any) -> list[Any]:
        [row] = await self._conn.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *args)
        self.plans += [plan["Plan"] for plan in json.loads(row[0])]
        return []

    async def fetchrow(self, statement: str, *args: Any) -> None:
        await self.fetch(statement, *args)

    async def fetchval(self, statement: str, *args: Any) -> None:
        await self.fetch(statement, *args)

    async def execute(self, statement: str, *args: Any) -> str:
        await self.fetch(statement, *args)
        return ""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


BIG = {"runs", "scopes", "tags", "ready", "stops", "journal", "waits", "outbox", "snapshots"}


def check(explained: Explained, most_pages: int, whole: str = "") -> None:
    """No big table is read from end to end (but the one named), and no more pages than such an answer needs."""
    assert explained.plans
    for plan in explained.plans:
        for node in nodes(plan):
            table = str(node.get("Relation Name", "")).partition("_")[0]
            if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan"):
                assert table not in BIG - {whole}, f"reads all of {table}: {node}"
        pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        steps = [(node["Node Type"], node.get("Index Name"), node["Shared Hit Blocks"]) for node in nodes(plan)]
        assert pages <= most_pages, f"{pages} pages: {steps}"


async def test_plans_of_what_a_worker_does_all_day(big: World) -> None:
    project, worker = big.project, big.worker
    async with big.db.connection() as conn:
        some = await conn.fetch("SELECT id FROM runs WHERE worker = $1 AND ended_at IS NULL LIMIT 50", worker)
        mine: list[UUID] = [row["id"] for row in some]
        lone = mine[0]
        stop = stops.Stop(project, 1, uuid4(), "sender7", False, False, 10**9, 1)
        writes = [journal.Write(project, run, 1, ['{"kind":"log_line"}'], "[]") for run in mine]
        last = [journal.Write(project, run, 1, ['{"kind":"execution_completed"}'], "[]", "completed") for run in mine]

        lost = await workers.register(conn, host="gone", pid=3, projects=[], lease=timedelta(seconds=60))
        await runs.start(conn, project, lost, [big.new()] * 3)

        async def measured(most_pages: int, call: Any, whole: str = "") -> None:
            explained = Explained(conn)
            transaction = conn.transaction()
            await transaction.start()
            try:
                await call(explained)
            finally:
                await transaction.rollback()
            check(explained, most_pages, whole)

        # For what is done all day, also without the sessions' own push towards indexes.
        await conn.execute("SET enable_seqscan = on")
        await measured(1500, lambda c: runs.claim(c, worker, [project], 50))
        await measured(60, lambda c: runs.claim(c, worker, [project + 1], 50))
        await measured(1500, lambda c: journal.append(c, worker, writes))
        await measured(60, lambda c: journal.append(c, worker, writes[:1]))
        await measured(3000, lambda c: journal.append(c, worker, last))
        await measured(30, lambda c: journal.read(c, project, lone, 0))
        await measured(30, lambda c: runs.status(c, project, lone))
        await measured(30, lambda c: tags.of_run(c, project, lone))
        await measured(400, lambda c: tags.of_runs(c, project, mine))
        await measured(500, lambda c: stops.targets(c, stop, 100))
        await measured(500, lambda c: stops.targets(c, stop, 100, after=ENDED + LIVE // 2))
        await measured(30, lambda c: stops.take_due(c, None, 200))
        await measured(30, lambda c: scopes.due_deadlines(c, 200))
        await measured(30, lambda c: scopes.next_due(c))
        await measured(30, lambda c: workers.notices(c, worker))
        sql = load(scopes.__name__)
        await measured(1000, lambda c: c.fetch(sql.lock_level, project, mine, mine))
        await measured(1000, lambda c: c.fetch(sql.lock_runs, project, mine))
        why = [["cancelled"] * 50, ["why"] * 50, ["{}"] * 50, [None] * 50, [1] * 50]
        await measured(4000, lambda c: c.execute(sql.end, project, mine, mine, *why))
        # For what is done after a death; "ready" is small enough to be read through.
        await conn.execute("SET enable_seqscan = off")
        look = load(workers.__name__).look
        await measured(300, lambda c: c.fetch(look, 1, uuid4(), [project], None, 3), "ready")
        await measured(250, lambda c: workers.release_dead(c, []), "ready")
        await measured(600, lambda c: workers.release_dead(c, [lost]), "ready")
        await measured(LIVE * 3, lambda c: runs.owned(c, worker), "ready")
        await measured(600, lambda c: runs.owned(c, lost), "ready")
        left = await scopes.next_due(conn)
        assert left is not None
        assert timedelta(hours=23) < left < timedelta(hours=25)
        assert await stops.count_tagged(conn, project, "sender7") == LIVE // 50
    ended = await stops.end_tagged(big.db, project, "sender7", "Cancelled by user", {"kind": "user"})
    assert len(ended.ended) == LIVE // 50


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_plan_that_was_made_while_the_tables_were_empty_is_still_right(world: World, analyzed: bool) -> None:
    """The sessions' settings see to it: a statement is planned once, and the tables grow under it."""
    async with world.db.connection() as conn:
        if analyzed:
            await conn.execute("ANALYZE")
        session = {name: await conn.fetchval(f"SHOW {name}") for name in ("plan_cache_mode", "enable_seqscan")}
        assert session == {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
        explained = Explained(conn)
        write = journal.Write(world.project, uuid4(), 1, ["{}"], "[]", "completed")
        await journal.append(explained, world.worker, [write, write])  # type: ignore[arg-type]
        await runs.claim(explained, world.worker, [world.project], 10)  # type: ignore[arg-type]
        check(explained, 100)
