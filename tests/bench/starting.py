"""The first seconds: `weft run examples/hello` on a machine that never ran weft, and once the database is warm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.scene import Scene
from weft.store.embedded import embedded_server

HELLO = Path(__file__).parents[2] / "examples" / "hello"


async def cold(scene: Scene) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="weft-cold-"))
    folder.chmod(0o755)
    surroundings = {
        **os.environ,
        "WEFT_DATA_FOLDER": str(folder / "pg"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    surroundings.pop("WEFT_DATABASE_URL", None)
    try:
        first = _run(surroundings)
        stopped = _run(surroundings)
        async with embedded_server(folder / "pg"):
            warm = min(_run(surroundings) for _ in range(3))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"cold_first_s": first, "cold_server_stopped_s": stopped, "cold_database_warm_s": warm}


def _run(surroundings: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "weft.cli", "run", str(HELLO)], env=surroundings, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started
