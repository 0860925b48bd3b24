"""A worker meets a fault at any point of what it does, and nothing is lost, done twice, or stuck.

The points are found by a first run. Each time some of them are tried, spread over all; `--soak` tries every one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import asyncpg
import pytest

from tests.engine.faults.outside import Outside
from tests.engine.faults.points import Point
from tests.engine.faults.rounds import Round
from tests.engine.network import Network
from tests.engine.scene import Scene
from weft.store.embedded import embedded_server, postmaster
from weft.store.migrate import migrate

SIDE_BY_SIDE = 3
"""Rounds at a time, each in a database of its own: most of a round is waiting."""

FEW = {"kill": 12, "freeze": 6, "cut": 12, "unknown": 12, "restart": 2}
"""How many points are tried where not all are."""


async def found(scene: Scene, outside: Outside) -> list[Point]:
    """Every point that a worker comes to while nothing happens to it."""
    async with Network.open(scene.url) as network:
        calm = Round(scene, network, outside)
        await calm.play()
    points = sorted(set(calm.seen))
    assert {point.kind for point in points} == {"await", "statement"}
    return points


def chosen(points: Sequence[Point], fault: str, soak: bool) -> list[Point]:
    """Those at which this fault can strike; without `soak` some of them, evenly spread."""
    match fault:
        case "unknown":
            points = [point for point in points if point.kind == "statement" and point.moment == "after"]
        case "cut":
            points = [point for point in points if point.kind == "await" or point.moment == "before"]
        case "freeze" | "restart":
            points = [point for point in points if point.kind == "await"]
    if soak:
        return list(points)
    count = min(FEW[fault], len(points))
    return [points[at * len(points) // count] for at in range(count)]


async def play_all(
    fault: str,
    points: Sequence[Point],
    urls: Sequence[str],
    outside: Outside,
    ran: Callable[[str], None],
    restart: Callable[[], Awaitable[None]] | None = None,
) -> None:
    left = list(points)
    struck = 0

    async def play(url: str) -> None:
        nonlocal struck
        async with Scene.open(url) as scene, Network.open(url) as network:
            while left:
                point = left.pop()
                this = Round(scene, network, outside, fault, point, restart)
                try:
                    await this.play()
                except Exception as error:
                    raise AssertionError(f"{fault} at {point}: {error}") from error
                struck += this.struck

    async with asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(play(url))
    # How far a worker comes in a given time differs from run to run, so some points are not come to.
    assert struck > len(points) * 0.5, f"only {struck} of {len(points)} points were come to"
    ran(f"{struck} of {len(points)} points")


@pytest.mark.parametrize("fault", ["kill", "freeze", "cut", "unknown"])
async def test_a_fault_at_any_point(
    fault: str, new_database: Callable[[], str], soak: bool, ran: Callable[[str], None]
) -> None:
    urls = [new_database() for _ in range(SIDE_BY_SIDE)]
    async with Outside.open() as outside:
        async with Scene.open(urls[0]) as scene:
            points = chosen(await found(scene, outside), fault, soak)
        await play_all(fault, points, urls, outside, ran)


async def test_the_server_dies_at_any_point_and_comes_back(
    server_folder: Path, soak: bool, ran: Callable[[str], None]
) -> None:
    async with embedded_server(server_folder) as url, Outside.open() as outside:
        connection = await asyncpg.connect(url)
        await migrate(connection)
        await connection.close()

        async def restart() -> None:
            server = postmaster.read(server_folder / "data")
            assert server is not None
            os.kill(server.pid, signal.SIGKILL)
            while True:
                try:
                    connection = await asyncpg.connect(url)
                except (OSError, asyncpg.PostgresError):
                    await asyncio.sleep(0.05)
                else:
                    await connection.close()
                    return

        async with Scene.open(url) as scene:
            points = chosen(await found(scene, outside), "restart", soak)
        await play_all("restart", points, [url], outside, ran, restart)
