"""Two hundred runs in flight in a process that is killed: from the start of another worker until all are done."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from tests.bench.scene import Scene, scene

RUNS = 200


async def recover(scene: Scene) -> dict[str, float]:
    other = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.recovering",
        scene.dsn,
        scene.key,
        env={**os.environ, "BENCH_HOLDS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert other.stdout is not None
    assert (await other.stdout.readline()).strip() == b"held"
    other.kill()
    await other.wait()
    started = time.perf_counter()
    async with scene.worker(claims=True):
        while await _completed(scene) < RUNS:
            await asyncio.sleep(0.01)
        seconds = time.perf_counter() - started
    return {"recover_200_s": seconds}


async def _completed(scene: Scene) -> int:
    async with scene.database.connection() as connection:
        found: int = await connection.fetchval(
            "SELECT count(*) FROM runs WHERE project = $1 AND status = 'completed'", scene.project
        )
    return found


async def hold(dsn: str, key: str) -> None:
    """The process to be killed: two hundred runs, each in the middle of a chain."""
    lines = ["n0 = Step { value: 0 }", "n1 = Holds { value: n0.value }"]
    lines += [f"n{at} = Step {{ value: n{at - 1}.value }}" for at in range(2, 10)]
    async with scene(dsn, key) as ready, ready.worker() as worker:
        program = ready.program("\n".join(lines))
        await asyncio.gather(*[worker.start(ready.project, program) for _ in range(RUNS)])
        while sum(node == "n1" for each in worker.executions.values() for node, _ in each.bodies) < RUNS:
            await asyncio.sleep(0.01)
        await worker.writer.flushed()
        print("held", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(sys.argv[1], sys.argv[2]))
