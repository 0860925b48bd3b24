"""A claiming worker to which something is going to happen: `python -m tests.engine.faults.victim URL SERVER`.

At the await named by POINT it does what ACT says. Every await that it comes to is written to the file FOUND, where that
is given. LEASE and RENEW are seconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta

from tests.engine.faults.points import ACTS, Counting, Point, watch_awaits
from tests.engine.faults.programs import CHILD, child
from tests.engine.scene import Scene


def note(found: int, point: Point) -> None:
    os.write(found, f"{point}\n".encode())


async def main(url: str, server: str) -> None:
    looked_for = os.environ.get("POINT")
    found = os.open(os.environ.get("FOUND", os.devnull), os.O_WRONLY | os.O_APPEND)
    counting = Counting(
        Point.read(looked_for) if looked_for else None,
        ACTS[os.environ.get("ACT", "")],
        lambda point: note(found, point),
    )
    watch_awaits(asyncio.get_running_loop(), counting)
    lease, renew = (timedelta(seconds=float(os.environ[name])) for name in ("LEASE", "RENEW"))
    async with Scene.open(url) as scene:
        scene.programs[CHILD] = child(server)
        async with scene.worker(claims=True, lease=lease, renew=renew):
            # A worker that cannot reach its database as it starts says so and ends, which is not what this is about.
            counting.begun = True
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
