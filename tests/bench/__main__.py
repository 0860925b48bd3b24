"""Runs scenarios on a durable embedded server of their own and prints one JSON line a scenario.

Each line has the figure, its median over `--rounds`, and its ratio to what the machine itself can do, measured in the
same run (`limits.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.bench import compiling, cost, limits, parking, recovering, runs, starting, stopping
from tests.bench.scene import PARKED, Scene, scene
from weft.store.embedded import embedded_server

Figures = dict[str, float]
SCENARIOS: dict[str, Callable[[Scene], Awaitable[Figures]]] = {
    "chain10": runs.chain10,
    "chain10_alone": runs.chain10_alone,
    "fanout100": runs.fanout100,
    "stop": stopping.stop,
    "park": parking.park,
    "stop_parked": parking.stop_parked,
    "wake": parking.wake,
    "idle": parking.idle,
    "recover": recovering.recover,
    "cost": cost.cost,
    "compile": compiling.compile_programs,
    "cold": starting.cold,
}


def median_of(rounds: list[Figures]) -> Figures:
    return {name: round(statistics.median(each[name] for each in rounds), 4) for name in rounds[0]}


def say(name: str, figures: Figures) -> None:
    print(json.dumps({"scenario": name, **figures}), flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parked", type=int, default=PARKED, help="how many runs `park` parks; `idle` ten times that")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        Path(folder).chmod(0o755)
        async with embedded_server(Path(folder) / "pg") as dsn:
            machine = median_of([await limits.measure(dsn) for _ in range(chosen.rounds)])
            say("limits", machine)
            for name in chosen.scenarios or SCENARIOS:
                rounds = []
                for _ in range(chosen.rounds):
                    async with scene(dsn, parked=chosen.parked) as ready:
                        rounds.append(await SCENARIOS[name](ready))
                say(name, limits.with_ratios(median_of(rounds), machine))


if __name__ == "__main__":
    asyncio.run(main())
