"""A claiming worker on the tests' project, as a process: `python -m tests.engine.worker_process URL`.

Prints `ready` once it claims. Settings come from LEASE, RENEW and GRACE, in seconds. SIGTERM drains.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta

from tests.engine.scene import Scene


def seconds(name: str, otherwise: float) -> timedelta:
    return timedelta(seconds=float(os.environ.get(name, otherwise)))


async def main(url: str) -> None:
    leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
    settings = {"lease": seconds("LEASE", 60), "renew": seconds("RENEW", 15), "grace": seconds("GRACE", 10)}
    async with Scene.open(url) as scene, scene.worker(claims=True, **settings):
        print("ready", flush=True)
        await leave.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
