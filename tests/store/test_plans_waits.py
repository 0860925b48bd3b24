"""The searches of waits stay cheap beside 200,000 parked runs (`--soak`: a million), of which some are due."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from tests.store.test_plans import Explained, check
from tests.store.world import HASH, World
from weft.store.pool import Connection
from weft.store.runs import children, journal, listing, retention, runs, scopes, snapshots, stops, waits, workers
from weft.store.runs.journal import Write
from weft.store.runs.waits import NewWait
from weft.store.sql import load

PARKED, PARKED_IN_A_SOAK = 200_000, 1_000_000
DUE = 1_000
"""So many timers are due; as many runs wait for another, and as many are ready."""


def fill(parked: int) -> str:
    return f"""
CREATE TEMP TABLE made AS
    SELECT weft_run_id() AS id, n, n % 100 AS sender FROM generate_series(1, {parked}) AS n;
INSERT INTO scopes (project, id) SELECT $1, id FROM made;
INSERT INTO runs (project, id, program, entry, started_at, status, worker, lease, next_seq, open_firings)
    SELECT $1, id, '{HASH}', 'main', weft_now(), 'waiting', NULL, 1, 5, '[["ask"]]' FROM made;
INSERT INTO journal (project, run, first, count, at, events)
    SELECT $1, id, 1, 4, weft_now(), '[{{"kind":"execution_started"}},{{"kind":"node_started","node":"ask"}},'
           '{{"kind":"suspension_registered","node":"ask"}},{{"kind":"node_suspended","node":"ask"}}]' FROM made;
INSERT INTO waits (project, run, registered_at, node, frames, call, part, token, kind, target, due, spec)
    SELECT $1, id, weft_now() + make_interval(secs => n), 'ask', '[]', 0, 0,
           replace(id::text, '-', '') || lpad('', 32, 'a'),
           CASE WHEN n <= {DUE} THEN 'timer' WHEN n <= 2 * {DUE} THEN 'run' ELSE 'form' END,
           CASE WHEN n BETWEEN {DUE + 1} AND {2 * DUE} THEN id END,
           weft_now() + CASE WHEN n <= {DUE} THEN interval '-1 day' WHEN n % 2 = 0 THEN interval '1 day' END,
           '{{}}' FROM made;
INSERT INTO tags (project, tag, run, number, live) SELECT $1, 'sender' || sender, id, n, true FROM made;
UPDATE runs SET status = 'queued' WHERE id IN (SELECT id FROM made WHERE n > {parked - DUE});
INSERT INTO ready (project, run) SELECT $1, id FROM made WHERE n > {parked - DUE};
DELETE FROM waits WHERE run IN (SELECT id FROM made WHERE n > {parked - DUE});
INSERT INTO outbox (project, run, due) SELECT $1, id, weft_now() FROM made WHERE n BETWEEN {DUE + 1} AND {2 * DUE};
DROP TABLE made;
ANALYZE scopes, runs, ready, waits, outbox, tags, journal
"""


@pytest_asyncio.fixture
async def big(database_url: str, soak: bool) -> AsyncIterator[World]:
    """Without the world's own look at the invariants, which reads everything."""
    async with World.open(database_url) as world:
        async with world.db.connection() as conn:
            await conn.execute("SET session_replication_role = replica")
            await conn.execute(fill(PARKED_IN_A_SOAK if soak else PARKED).replace("$1", str(world.project)))
            await conn.execute("SET session_replication_role = origin")
        yield world


async def measured(conn: Connection, most_pages: int, call: Any, whole: str = "") -> None:
    explained = Explained(conn)
    transaction = conn.transaction()
    await transaction.start()
    try:
        await call(explained)
    finally:
        await transaction.rollback()
    check(explained, most_pages, whole)


async def test_plans_beside_many_parked_runs(big: World) -> None:
    project, worker = big.project, big.worker
    of_waits, of_children, of_scopes, of_retention = (
        load(module.__name__) for module in (waits, children, scopes, retention)
    )
    async with big.db.connection() as conn:
        some = [row["run"] for row in await conn.fetch("SELECT run FROM waits WHERE kind = 'form' LIMIT 50")]
        tokens = [run.hex + "a" * 32 for run in some]
        mine = [each.run for each in await runs.claim(conn, worker, [project], 50)]
        stop = stops.Stop(project, 1, uuid4(), "sender7", False, False, 10**9, 1)

        def parks(run: UUID) -> Write:
            new = NewWait("ask", "[]", 1, 0, run.hex + "b" * 32, "form", "{}")
            return Write(
                project, run, 1 + 1, ["{}"], "[]", waits=[new], forget=[run.hex + "c" * 32], parks=True, after=4
            )

        events = ['{"kind":"suspension_resolved"}'] * 50
        bounds = await conn.fetchrow(of_retention.bounds, timedelta(0))

        await measured(conn, 1500, lambda c: runs.claim(c, worker, [project], 50))
        await measured(conn, 60, lambda c: runs.claim(c, worker, [project + 1], 50))
        await measured(conn, 2500, lambda c: c.fetch(of_waits.due, 200))
        await measured(
            conn,
            3500,
            lambda c: c.fetch(of_waits.resolve, [project] * 50, some, tokens, events, [False] * 50),
        )
        await measured(
            conn,
            120,
            lambda c: c.fetch(of_waits.resolve, [project], some[:1], tokens[:1], events[:1], [True]),
        )
        await measured(conn, 30, lambda c: c.fetch(of_waits.find, some[0], tokens[0]), "projects")
        await measured(conn, 30, lambda c: waits.of_run(c, project, some[0]))
        await measured(conn, 120, lambda c: waits.forms(c, [project], 50))
        page = listing.Wanted((project,), statuses=("waiting",), limit=20)
        await measured(conn, 600, lambda c: listing.page(c, page))
        await measured(conn, 2500, lambda c: journal.append(c, worker, [parks(run) for run in mine]))
        await measured(conn, 30, lambda c: scopes.next_due(c))
        await measured(conn, 3500, lambda c: c.fetch(of_children.take, 200))
        await measured(conn, 30, lambda c: snapshots.resume(c, [(project, some[0])]))
        await measured(conn, 30, lambda c: listing.journal_page(c, listing.RunKey(project, some[0]), 0, 100))
        await measured(conn, 700, lambda c: stops.targets(c, stop, 100))
        await measured(conn, 30, lambda c: c.fetch(of_waits.told_of, project, some[0], tokens[0]))
        why = [["cancelled"] * 50, ["why"] * 50, ["{}"] * 50, [None] * 50, [1] * 50]
        await measured(conn, 4000, lambda c: c.execute(of_scopes.end, project, some, some, *why))
        await measured(conn, 3000, lambda c: c.execute(of_retention.delete, project, some))
        await measured(conn, 100, lambda c: c.fetch(of_retention.children, project, some[:20]))
        # The sweep; "ready" is small enough to be read through.
        await measured(conn, 100, lambda c: workers.release_dead(c, []), "ready")
        # A clean-up walks page by page over all that started long enough ago.
        walk = (project, bounds["ended_before"], bounds["below"], UUID(int=0), 500)
        await measured(conn, 600, lambda c: c.fetch(of_retention.page, *walk))


@pytest.mark.parametrize("analyzed", [False, True])
async def test_plans_that_were_made_while_the_tables_were_empty(world: World, analyzed: bool) -> None:
    async with world.db.connection() as conn:
        if analyzed:
            await conn.execute("ANALYZE")
        explained = Explained(conn)
        run = uuid4()
        new = NewWait("ask", "[]", 1, 0, run.hex + "b" * 32, "form", "{}")
        write = Write(world.project, run, 1, ["{}"], "[]", waits=[new], parks=True)
        await journal.append(explained, world.worker, [write])  # type: ignore[arg-type]
        sql = load(waits.__name__)
        await explained.fetch(sql.resolve, [world.project], [run], [run.hex], ["{}"], [False])
        await explained.fetch(load(children.__name__).take, 100)
        check(explained, 100)
        # As the sessions plan it, for any limit: in the order of the index, not by a sort of all that is due.
        await conn.execute(f"PREPARE due AS {sql.due}")
        plan = "\n".join(row[0] for row in await conn.fetch("EXPLAIN EXECUTE due (500)"))
        assert "Index Scan using waits_due" in plan, plan
        assert "Sort" not in plan, plan
