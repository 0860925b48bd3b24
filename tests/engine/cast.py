"""Who takes part in a race: workers in this process, each as one in its own would be, and what the store says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from tests.engine.scene import Scene
from weft.engine.worker import Worker
from weft.store.notify import Notice, publish
from weft.store.runs import endings
from weft.store.runs.scopes import Ended

BY_USER = ("Cancelled by user", {"kind": "user"})


@asynccontextmanager
async def another(scene: Scene, url: str, **options: Any) -> AsyncIterator[Worker]:
    """A worker with connections of its own, by way of this URL."""
    async with Scene.open(url) as own, own.worker(**options) as worker:
        assert own.project == scene.project
        yield worker


async def call_for_claims(scene: Scene) -> None:
    """Tell every process that there are runs to be claimed."""
    async with scene.database.connection() as connection:
        await publish(connection, [Notice("ready", scene.project)])


async def end(scene: Scene, *runs: UUID) -> list[Ended]:
    """A person's stop, of which no worker is told: what it leaves is in the store alone."""
    report = await endings.end_runs(scene.database, scene.project, runs, *BY_USER)
    assert not report.failed
    return report.ended


async def tell(scene: Scene, ended: Sequence[Ended]) -> None:
    """What whoever stopped these runs would tell their owners."""
    async with scene.database.connection() as connection:
        await publish(
            connection, [Notice("ended", each.project, each.run, each.worker) for each in ended if each.worker]
        )


async def fetch(scene: Scene, query: str, *arguments: Any) -> list[Any]:
    async with scene.database.connection() as connection:
        return list(await connection.fetch(query, *arguments))


async def value(scene: Scene, query: str, *arguments: Any) -> Any:
    async with scene.database.connection() as connection:
        return await connection.fetchval(query, *arguments)


async def until(scene: Scene, query: str, *arguments: Any) -> Any:
    """What a query gives, once that is something to see."""
    while not (seen := await value(scene, query, *arguments)):
        await asyncio.sleep(0.01)
    return seen


async def until_carried_out(scene: Scene, *tags: str) -> None:
    """Returns when no stop by one of these tags is queued any more."""
    await until(scene, "SELECT NOT EXISTS (SELECT FROM stops WHERE tag = ANY ($1) AND state = 'queued')", list(tags))


async def newest(scene: Scene, tag: str) -> UUID:
    """The run that was numbered last for the tag."""
    run: UUID = await value(scene, "SELECT run FROM tags WHERE tag = $1 ORDER BY number DESC LIMIT 1", tag)
    return run


async def live(scene: Scene, runs: Sequence[UUID]) -> list[UUID]:
    rows = await fetch(scene, "SELECT id FROM runs WHERE id = ANY ($1) AND ended_at IS NULL", list(runs))
    return [row["id"] for row in rows]


async def check_causes(scene: Scene) -> int:
    """Every run that was stopped by another names one that tagged later. How many there are."""
    wrong = await fetch(
        scene,
        """SELECT v.id, v.reason FROM runs AS v
           LEFT JOIN tags AS mine ON mine.run = v.id AND mine.tag = v.cause ->> 'tag'
           LEFT JOIN tags AS theirs ON theirs.tag = mine.tag AND theirs.run = (v.cause ->> 'by')::uuid
           WHERE v.status = 'cancelled' AND v.cause ->> 'kind' = 'execution'
             AND (theirs.number > mine.number) IS NOT TRUE""",
    )
    assert not wrong, f"{len(wrong)} victims do not name a run that tagged later, such as {wrong[:3]}"
    return int(
        await value(scene, "SELECT count(*) FROM runs WHERE status = 'cancelled' AND cause ->> 'kind' = 'execution'")
    )


async def check_no_deadlock(scene: Scene) -> None:
    found = await value(scene, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert found == 0, f"{found} deadlocks"
