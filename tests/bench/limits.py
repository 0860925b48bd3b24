"""What this machine can do without any runtime: the figures that ours are compared with."""

from __future__ import annotations

import asyncio
import time

import asyncpg

SECONDS = 1.0
GROUPED_RUNS = 3000
STEPS = 12
AT_ONCE = 50


async def measure(dsn: str) -> dict[str, float]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("DROP SCHEMA IF EXISTS limits CASCADE; CREATE SCHEMA limits")
        await connection.execute("CREATE TABLE limits.step (run int, step int, value json, PRIMARY KEY (run, step))")
        return {
            "commits_per_s": await _commits(connection),
            "select1_us": await _round_trip(connection),
            "task_spawns_per_s": await _spawns(),
            "grouped_chains_per_s": await _grouped_chains(dsn),
            "chain_alone_ms": await _chain_alone(connection),
        }
    finally:
        # Left there, its rows would be vacuumed while the scenarios run.
        await connection.execute("DROP SCHEMA limits CASCADE")
        await connection.close()


async def _commits(connection: asyncpg.Connection) -> float:
    """Single-row commits a second on one connection."""
    insert = await connection.prepare("INSERT INTO limits.step VALUES ($1, $2, '1')")
    done = 0
    started = time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        await insert.fetch(-1, done)
        done += 1
    return done / (time.perf_counter() - started)


async def _round_trip(connection: asyncpg.Connection) -> float:
    select = await connection.prepare("SELECT 1")
    taken = []
    for _ in range(2000):
        started = time.perf_counter()
        await select.fetchval()
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2] * 1e6


async def _spawns() -> float:
    async def nothing() -> None:
        pass

    started = time.perf_counter()
    for _ in range(20):
        await asyncio.gather(*[asyncio.create_task(nothing()) for _ in range(1000)])
    return 20_000 / (time.perf_counter() - started)


async def _chain_alone(connection: asyncpg.Connection) -> float:
    """A ten-step chain by hand, alone: a commit a step and one each for start and end. Median, in milliseconds."""
    insert = await connection.prepare("INSERT INTO limits.step VALUES ($1, $2, '1')")
    taken = []
    for run in range(200):
        started = time.perf_counter()
        for step in range(STEPS):
            await insert.fetch(1_000_000 + run, step)
        taken.append(time.perf_counter() - started)
    return sorted(taken)[len(taken) // 2] * 1e3


async def _grouped_chains(dsn: str) -> float:
    """The same chains, fifty at once, where two writers commit whatever waits in one statement. Chains a second."""
    waiting: list[tuple[int, int, asyncio.Future[None]]] = []
    wake = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def write() -> None:
        connection = await asyncpg.connect(dsn)
        insert = await connection.prepare(
            "INSERT INTO limits.step SELECT * FROM unnest($1::int[], $2::int[], $3::json[])"
        )
        try:
            while True:
                if not waiting:
                    wake.clear()
                    await wake.wait()
                    continue
                batch, waiting[:] = waiting[:], []
                await insert.fetch([each[0] for each in batch], [each[1] for each in batch], ["1"] * len(batch))
                for _, _, saved in batch:
                    saved.set_result(None)
        finally:
            connection.terminate()

    runs = iter(range(2_000_000, 2_000_000 + GROUPED_RUNS))

    async def chains() -> None:
        for run in runs:
            for step in range(STEPS):
                saved: asyncio.Future[None] = loop.create_future()
                waiting.append((run, step, saved))
                wake.set()
                await saved

    writers = [asyncio.create_task(write()) for _ in range(2)]
    started = time.perf_counter()
    await asyncio.gather(*[chains() for _ in range(AT_ONCE)])
    taken = time.perf_counter() - started
    for writer in writers:
        writer.cancel()
    await asyncio.gather(*writers, return_exceptions=True)
    return GROUPED_RUNS / taken


def with_ratios(figures: dict[str, float], machine: dict[str, float]) -> dict[str, float]:
    """The figures, with what they are of the machine's own."""
    found = dict(figures)
    if "runs_per_s" in figures:
        found["of_grouped_floor"] = round(figures["runs_per_s"] / machine["grouped_chains_per_s"], 3)
    if "alone_p50_ms" in figures:
        found["of_chain_alone"] = round(figures["alone_p50_ms"] / machine["chain_alone_ms"], 2)
    return found
