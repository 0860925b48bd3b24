"""What a worker asks of the store: nothing to speak of while nothing goes on, and little a run where many go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import UUID

from tests.engine.scene import Scene
from weft.flow.events import Event
from weft.store.pool import Database

POOL = 4
"""Connections of the scene's pool."""
COUNTING = 2 * POOL + 2
"""Transactions of counting itself."""


async def commits(scene: Scene) -> int:
    """How many transactions there were; each session tells the statistics first, which else takes seconds."""
    async with AsyncExitStack() as held:
        pool = [await held.enter_async_context(scene.database.connection()) for _ in range(POOL)]
        for connection in pool:
            await connection.execute("SELECT pg_stat_force_next_flush()")
            await connection.execute("SELECT 1")
        await pool[0].execute("SELECT pg_stat_clear_snapshot()")
        found: int = await pool[0].fetchval(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
    return found


async def test_an_idle_worker_looks_less_than_five_times_a_second(scene: Scene) -> None:
    async with scene.worker(claims=True):
        before = await commits(scene)
        await asyncio.sleep(6)
        spent = await commits(scene) - before
    assert spent - COUNTING < 5 * 6


ASKS = 'a = HumanQuery { title: "Age?"  fields: [{ "kind": "text_input", "key": "age" }] }'


async def test_runs_that_were_answered_together_wake_in_a_few_transactions(scene: Scene) -> None:
    count = 60
    parked = await scene.queue(ASKS, count)
    async with scene.worker(claims=True):
        for run in parked:
            await scene.until_status(run, "waiting")
    people = await Database.open(scene.url, pool_size=1)
    for run in parked:
        await scene.answer((await scene.form(run)).token, {"age": "30"})
    await people.close()
    before = await commits(scene)
    done = asyncio.Event()
    ended: set[UUID] = set()

    def saved(run: UUID, events: Sequence[Event]) -> None:
        if any(each.kind == "execution_completed" for each in events):
            ended.add(run)
            if len(ended) == count:
                done.set()

    async with scene.worker(claims=True) as worker:
        worker.listeners.append(saved)
        await done.wait()
    assert await commits(scene) - before < count
