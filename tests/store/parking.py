"""Runs that wait, as an engine would leave them: what their last write says, and the tokens that it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.store.world import World
from weft.flow.events import Event, NodeRetryScheduled, NodeSuspended, SuspensionRegistered, encode
from weft.rules.waits import instant_text, token
from weft.store.runs import journal, waits
from weft.store.runs.journal import Write
from weft.store.runs.waits import NewWait, Woken

SECRET = b"of this test"
AGES = timedelta(days=36_000)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def name(run: UUID, part: int = 0, *, node: str = "ask", call: int = 0) -> str:
    """The token of a run's wait."""
    return token(SECRET, run, node, (), call, part)


def suspended(
    world: World,
    run: UUID,
    *kinds: str,
    node: str = "ask",
    call: int = 0,
    mode: Any = "first",
    due: datetime | Sequence[datetime | None] | None = None,
    target: UUID | None = None,
    lease: int = 1,
    parks: bool = True,
    open_nodes: Sequence[str] | None = None,
    after: int = 2,
) -> Write:
    """The write with which a node of the run begins to wait; for one form, where nothing is said."""
    kinds = kinds or ("form",)
    dues = list(due) if isinstance(due, Sequence) else [due] * len(kinds)
    parts = [
        NewWait(node, "[]", call, part, name(run, part, node=node, call=call), kind, "{}", mode, target, at)  # type: ignore[arg-type]
        for part, (kind, at) in enumerate(zip(kinds, dues, strict=True))
    ]
    said: list[dict[str, Any]] = [{"token": part.token, "kind": part.kind, "spec": {}} for part in parts]
    events: list[Event] = [
        SuspensionRegistered(node, (), call, tuple(said), mode),
        NodeSuspended(node, (), parts[0].token),
    ]
    if kinds == ("retry",):
        events = [NodeRetryScheduled(node, (), -call, parts[0].token, instant_text(parts[0].due or PAST), {})]
    firings = json.dumps([[each] for each in (open_nodes or [node])])
    texts = [encode(event) for event in events]
    return Write(world.project, run, lease, texts, firings, waits=parts, parks=parks, after=after)


async def park(world: World, *runs: UUID, **how: Any) -> None:
    """Lets runs that have started the node `ask` wait, and sees that they are parked."""
    kinds = how.pop("kinds", ())
    writes = [suspended(world, run, *kinds, **how) for run in runs]
    async with world.db.connection() as conn:
        saved = await journal.append(conn, world.worker, writes)
    assert {run for run, each in saved.items() if each.parked} == set(runs)


async def parked(world: World, count: int = 1, *, below: UUID | None = None, **how: Any) -> list[UUID]:
    """New runs that wait."""
    runs = await world.start(count, nodes=["ask"], below=below)
    await park(world, *runs, **how)
    return runs


async def answer(world: World, token: str, value: str | None = '"yes"', **how: Any) -> waits.Answered:
    async with world.db.connection() as conn:
        return await waits.answer(conn, token, value, "Ann", **how)


async def take_due(world: World, limit: int = 100) -> Woken:
    async with world.db.connection() as conn:
        return await waits.take_due(conn, limit)


async def waiting(world: World, run: UUID) -> list[str]:
    """The tokens of what the run waits for."""
    async with world.db.connection() as conn:
        return [each.token for each in await waits.of_run(conn, world.project, run)]


async def resolutions(world: World, run: UUID) -> list[dict[str, Any]]:
    return [event for event in await world.events(run) if event["kind"] == "suspension_resolved"]
