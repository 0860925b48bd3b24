"""What a chain of ten costs the database: commits, WAL and rows a run, alone and fifty at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.bench.runs import chain, many
from tests.bench.scene import Scene
from weft.engine.worker import Worker

ALONE = 50
TOGETHER = 1000


async def cost(scene: Scene) -> dict[str, float]:
    program = scene.program(chain(10))
    async with scene.worker() as worker:
        await many(worker, scene.project, program, 20, 10)
        alone = await _difference(scene, worker, lambda: many(worker, scene.project, program, ALONE, 1))
        together = await _difference(scene, worker, lambda: many(worker, scene.project, program, TOGETHER, 50))
    return {
        "commits_alone": alone["commits"] / ALONE,
        "wal_bytes_alone": alone["wal"] / ALONE,
        "commits_at_50": together["commits"] / TOGETHER,
        "wal_bytes_at_50": together["wal"] / TOGETHER,
        "journal_rows": together["journal"] / TOGETHER,
    }


async def _difference(scene: Scene, worker: Worker, work: Callable[[], Any]) -> dict[str, float]:
    """What the work cost, without the commits that an idle worker makes by itself while the counters settle."""
    start = await _counters(scene)
    before = await _counters(scene)
    await work()
    after = await _counters(scene)
    cost = {name: after[name] - before[name] for name in before}
    cost["commits"] -= before["commits"] - start["commits"]
    return cost


async def _counters(scene: Scene) -> dict[str, float]:
    # An idle session reports what it did within ten seconds; asking earlier misses the last of it.
    await asyncio.sleep(10.5)
    async with scene.database.connection() as connection:
        row = await connection.fetchrow(
            "SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits, "
            "(pg_current_wal_lsn() - '0/0')::bigint AS wal, (SELECT count(*) FROM journal) AS journal"
        )
        return {name: float(value) for name, value in row.items()}
