"""How fast runs go: a chain of ten effectful nodes, and a fan of a hundred with a join."""

from __future__ import annotations

import asyncio
import time

from tests.bench.scene import Scene
from weft.engine.worker import Worker
from weft.lang.graph import Program

RUNS = 500
AT_ONCE = 50
ALONE = 100


def chain(length: int) -> str:
    lines = ["n0 = Step { value: 0 }"]
    lines += [f"n{i} = Step {{ value: n{i - 1}.value }}" for i in range(1, length)]
    return "\n".join(lines)


def fan(width: int) -> str:
    lines = ["seed = Step { value: 0 }"]
    lines += [f"n{i} = Step {{ value: seed.value }}" for i in range(width)]
    lines.append("join = Sum { " + " ".join(f"p{i}: n{i}.value" for i in range(width)) + " }")
    return "\n".join(lines)


async def one(worker: Worker, project: int, program: Program) -> float:
    started = time.perf_counter()
    run = await worker.start(project, program)
    end = await worker.ended(run, project)
    assert end.status == "completed", end
    return time.perf_counter() - started


async def many(worker: Worker, project: int, program: Program, runs: int, at_once: int) -> tuple[float, list[float]]:
    """Seconds in all, and of each run."""
    left = iter(range(runs))
    taken: list[float] = []

    async def lane() -> None:
        for _ in left:
            taken.append(await one(worker, project, program))

    started = time.perf_counter()
    await asyncio.gather(*[lane() for _ in range(at_once)])
    return time.perf_counter() - started, taken


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


async def chain10(scene: Scene) -> dict[str, float]:
    program = scene.program(chain(10))
    async with scene.worker() as worker:
        await many(worker, scene.project, program, 100, AT_ONCE)
        used = time.process_time()
        seconds, taken = await many(worker, scene.project, program, RUNS, AT_ONCE)
        used = time.process_time() - used
    return {
        "runs_per_s": RUNS / seconds,
        "p50_ms": percentile(taken, 0.5) * 1e3,
        "p99_ms": percentile(taken, 0.99) * 1e3,
        "python_us_per_run": used / RUNS * 1e6,
    }


async def chain10_alone(scene: Scene) -> dict[str, float]:
    program = scene.program(chain(10))
    async with scene.worker() as worker:
        _, taken = await many(worker, scene.project, program, ALONE, 1)
    return {"alone_p50_ms": percentile(taken, 0.5) * 1e3, "alone_p99_ms": percentile(taken, 0.99) * 1e3}


async def fanout100(scene: Scene) -> dict[str, float]:
    program = scene.program(fan(100))
    async with scene.worker() as worker:
        _, taken = await many(worker, scene.project, program, 40, 1)
    return {"fanout100_p50_ms": percentile(taken, 0.5) * 1e3, "fanout100_p99_ms": percentile(taken, 0.99) * 1e3}
