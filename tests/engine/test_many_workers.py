"""Ten workers as ten processes on one database: nothing is done twice, and nothing is lost.

`--rounds` sets how much: 20 runs and 20 timers a round, 2,000 of each by default; 2500 rounds are 50,000 runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.engine.scene import Scene
from weft.rules.waits import instant_text
from weft.store.runs import waits

WORKERS = 10
MOST_TIMERS = 10_000


@pytest.fixture
async def ten_workers(scene: Scene) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        processes = [scene.process() for _ in range(WORKERS)]
        await asyncio.gather(*[stack.enter_async_context(process) for process in processes])
        yield scene


async def count(scene: Scene, status: str) -> int:
    async with scene.database.connection() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM runs WHERE status = $1", status)
    return found


async def until_all_completed(scene: Scene, runs: int) -> None:
    while await count(scene, "completed") < runs:
        assert await count(scene, "failed") == 0
        await asyncio.sleep(0.1)


async def test_short_runs_happen_once_each(
    ten_workers: Scene, rounds: int, ran: Callable[[str], None], tmp_path: Path
) -> None:
    scene, trace = ten_workers, tmp_path / "trace"
    runs = await scene.queue(f'a = Effect {{ file: "{trace}"  value: 1 }}\nb = Step {{ value: a.value }}', 20 * rounds)
    await until_all_completed(scene, len(runs))
    assert Counter(trace.read_text().splitlines()) == Counter(f"a {run}" for run in runs)
    async with scene.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM runs WHERE lease <> 1") == 0
    ran(f"{len(runs):,} runs by {WORKERS} workers")


async def test_timers_due_at_one_instant_fire_once_each(
    ten_workers: Scene, rounds: int, ran: Callable[[str], None]
) -> None:
    scene, timers = ten_workers, min(20 * rounds, MOST_TIMERS)
    async with scene.database.connection() as connection:
        due = await waits.now(connection) + timedelta(seconds=5 + timers / 250)
    text = f'a = WaitUntil {{ until: "{instant_text(due)}" }}\nb = Debug {{ data: a.wokeAt }}'
    runs = await scene.queue(text, timers)
    while await count(scene, "waiting") < timers:
        await asyncio.sleep(0.1)
    async with scene.database.connection() as connection:
        assert await waits.now(connection) < due, "they were to be due all at once"
    await until_all_completed(scene, timers)
    async with scene.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT run, event ->> 'by' AS by FROM journal, json_array_elements(events) AS event "
            "WHERE event ->> 'kind' = 'suspension_resolved'"
        )
    assert Counter((row["run"], row["by"]) for row in rows) == Counter((run, "timer") for run in runs)
    ran(f"{timers:,} timers by {WORKERS} workers")
