"""Runs that wait for a person: how fast they park, go on and are stopped, what they take on disk, and what a worker
beside many of them does. `--parked` says how many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from tests.bench.runs import percentile
from tests.bench.scene import Scene
from weft.engine.worker import Worker
from weft.flow.events import Event
from weft.store.pool import Database
from weft.store.runs import stops, waits

AT_ONCE = 500
ANSWERERS = 20
ALONE = 200
STOPPED = 10_000
LINES = 100_000
WAKES = 30
IDLE_SECONDS = 20
IDLE_PARKED = 10
"""How many times `--parked` an idle worker is measured beside."""
ANSWER = '{"note":"yes"}'
ASK = "ask = Asks"


@dataclass
class Watch:
    """Counts what parks and completes, and wakes whoever waits for that."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    parked: int = 0
    completed: int = 0

    def told_parked(self, _fence: object, _next_seq: int) -> None:
        self.parked += 1
        self.changed.set()

    def saved(self, _run: UUID, events: Sequence[Event]) -> None:
        if any(each.kind == "execution_completed" for each in events):
            self.completed += 1
            self.changed.set()

    async def until(self, *, parked: int = 0, completed: int = 0) -> None:
        while self.parked < parked or self.completed < completed:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def watched(scene: Scene) -> AsyncIterator[tuple[Worker, Watch]]:
    async with scene.worker(claims=True) as worker:
        watch = Watch()
        worker.told_parked.append(watch.told_parked)
        worker.listeners.append(watch.saved)
        yield worker, watch


async def start(scene: Scene, worker: Worker, watch: Watch, count: int, text: str = ASK) -> None:
    """Start so many runs, some at a time, until all are parked."""
    program, left, before = scene.program(text), iter(range(count)), watch.parked

    async def lane() -> None:
        for _ in left:
            await worker.start(scene.project, program)

    await asyncio.gather(*[lane() for _ in range(AT_ONCE)])
    await watch.until(parked=before + count)


async def tokens(scene: Scene) -> list[str]:
    async with scene.database.connection() as connection:
        rows = await connection.fetch("SELECT token FROM waits WHERE project = $1", scene.project)
    return [row["token"] for row in rows]


async def answer(database: Database, worker: Worker, token: str) -> None:
    async with database.connection() as connection:
        answered = await waits.answer(connection, token, ANSWER, "bench")
    worker.tell_answered([answered])


async def park(scene: Scene) -> dict[str, float]:
    async with watched(scene) as (worker, watch):
        await start(scene, worker, watch, 500)
        before = await _bytes(scene)
        started = time.perf_counter()
        await start(scene, worker, watch, scene.parked)
        parking = time.perf_counter() - started
        on_disk = await _bytes(scene) - before
        found = await tokens(scene)
        answering = await _all_at_once(scene, worker, watch, found)
        alone = [await _alone(scene, worker, watch) for _ in range(ALONE)]
    return {
        "parked_per_s": scene.parked / parking,
        "bytes_per_parked": on_disk / scene.parked,
        "answered_per_s": len(found) / answering,
        "answer_p50_ms": percentile(alone, 0.5) * 1e3,
        "answer_p99_ms": percentile(alone, 0.99) * 1e3,
    }


async def _all_at_once(scene: Scene, worker: Worker, watch: Watch, found: Sequence[str]) -> float:
    """Answers on connections of their own, each with its commit, until all runs are at their end, in seconds."""
    left = iter(found)
    people = await Database.open(scene.dsn, pool_size=ANSWERERS)

    async def lane() -> None:
        for token in left:
            await answer(people, worker, token)

    try:
        started = time.perf_counter()
        await asyncio.gather(*[lane() for _ in range(ANSWERERS)])
        await watch.until(completed=len(found))
        return time.perf_counter() - started
    finally:
        await people.close()


async def _alone(scene: Scene, worker: Worker, watch: Watch) -> float:
    """From an answer to the end of its run, where nothing else goes on, in seconds."""
    await start(scene, worker, watch, 1)
    [token] = await tokens(scene)
    done, started = watch.completed, time.perf_counter()
    await answer(scene.database, worker, token)
    await watch.until(completed=done + 1)
    return time.perf_counter() - started


async def _bytes(scene: Scene) -> int:
    """All that weft's tables and their indexes take."""
    async with scene.database.connection() as connection:
        found: int = await connection.fetchval(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relnamespace = 'weft'::regnamespace AND relkind = 'r'"
        )
    return found


async def stop_parked(scene: Scene) -> dict[str, float]:
    async with watched(scene) as (worker, watch):
        await start(scene, worker, watch, STOPPED)
        async with scene.database.connection() as connection:
            await connection.execute(
                "INSERT INTO tags (project, number, run, tag) SELECT $1, nextval('tag_numbers'), id, 'all' "
                "FROM runs WHERE project = $1",
                scene.project,
            )
        started = time.perf_counter()
        report = await stops.end_tagged(scene.database, scene.project, "all", "Cancelled by user", {"kind": "user"})
        seconds = time.perf_counter() - started
        assert len(report.ended) == STOPPED
    return {"stop_10000_parked_s": seconds}


async def wake(scene: Scene) -> dict[str, float]:
    """From an answer to the next wait of a run with a journal of a hundred thousand events."""
    text = f"talk = Chatters {{ lines: {LINES} }}\nask = Asks {{ value: talk.value  times: {WAKES + 1} }}"
    async with watched(scene) as (worker, watch):
        await start(scene, worker, watch, 1, text)
        taken = []
        for at in range(WAKES):
            while any(each.fence is not None for each in worker.executions.values()):
                await asyncio.sleep(0.01)
            [token] = await tokens(scene)
            started = time.perf_counter()
            await answer(scene.database, worker, token)
            await watch.until(parked=at + 2)
            taken.append(time.perf_counter() - started)
    return {"wake_p50_ms": percentile(taken, 0.5) * 1e3, "wake_max_ms": max(taken) * 1e3}


async def idle(scene: Scene) -> dict[str, float]:
    async with watched(scene) as (worker, watch):
        await start(scene, worker, watch, IDLE_PARKED * scene.parked)
    async with scene.worker(claims=True) as worker:
        await asyncio.sleep(2)
        before, used, started = await _commits(scene), time.process_time(), time.perf_counter()
        await asyncio.sleep(IDLE_SECONDS)
        seconds = time.perf_counter() - started
        used = time.process_time() - used
        commits = await _commits(scene) - before
        assert not worker.executions
    return {
        "parked": IDLE_PARKED * scene.parked,
        "idle_core_percent": used / seconds * 100,
        "idle_commits_per_s": commits / seconds,
    }


async def _commits(scene: Scene) -> int:
    async with scene.database.connection() as connection:
        found: int = await connection.fetchval(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
    return found
