"""How fast a stop is: a thousand running runs of one tag, and from the ask to the body of another process."""

from __future__ import annotations

import asyncio
import sys
import time

from tests.bench.runs import percentile
from tests.bench.scene import Scene, scene
from weft.store.runs import stops

RUNNING = 1000
LATENCIES = 30


async def stop(scene: Scene) -> dict[str, float]:
    program = scene.program("hang = Hang")
    async with scene.worker() as worker:
        runs = await asyncio.gather(*[worker.start(scene.project, program) for _ in range(RUNNING)])
        async with scene.database.connection() as connection:
            await connection.execute(
                "INSERT INTO tags (project, number, run, tag) SELECT $1, nextval('tag_numbers'), run, 'all' "
                "FROM unnest($2::uuid[]) AS run",
                scene.project,
                runs,
            )
        while sum(len(each.bodies) for each in worker.executions.values()) < RUNNING:
            await asyncio.sleep(0.01)
        started = time.perf_counter()
        report = await stops.end_tagged(scene.database, scene.project, "all", "Cancelled by user", {"kind": "user"})
        ended = time.perf_counter() - started
        assert len(report.ended) == RUNNING
        worker.tell_ended(report.ended)
        while worker.executions or any(each.bodies for each in worker.executions.values()):
            await asyncio.sleep(0.001)
    return {"stop_1000_s": ended, **await _latency(scene)}


async def _latency(scene: Scene) -> dict[str, float]:
    """From the ask in this process to `CancelledError` in the body of another one, in milliseconds."""
    other = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.stopping",
        scene.dsn,
        scene.key,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert other.stdin is not None and other.stdout is not None
    taken = []
    async with scene.worker() as worker:
        asker = scene.program('stop = StopTagged { tags: ["victim"] }')
        for _ in range(LATENCIES):
            other.stdin.write(b"start\n")
            assert (await other.stdout.readline()).strip() == b"started"
            # perf_counter is the machine's monotonic clock: two processes may compare it.
            asked = time.perf_counter()
            await worker.start(scene.project, asker)
            taken.append(float(await other.stdout.readline()) - asked)
    other.stdin.close()
    await other.wait()
    return {"stop_body_p50_ms": percentile(taken, 0.5) * 1e3, "stop_body_p99_ms": percentile(taken, 0.99) * 1e3}


async def serve(dsn: str, key: str) -> None:
    """The other process: starts a run that hangs when told, and says when its body was cancelled."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with scene(dsn, key) as ready, ready.worker() as worker:
        program = ready.program("hang = Hang")
        stopped_at = sys.modules[ready.registry.node_class("Hang").__module__].stopped_at
        while await reader.readline():
            run = await worker.start(ready.project, program, tags=["victim"])
            while not worker.executions[run].bodies:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
            print("started", flush=True)
            while not stopped_at:
                await asyncio.sleep(0.0005)
            print(stopped_at.pop(), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
