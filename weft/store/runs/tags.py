"""Tags: how a run labels itself, in an order that everybody agrees on.

What a legal tag is belongs to the rules; whom a stop by tag reaches is `stops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from weft.flow.events import ExecutionTagged, encode
from weft.store.pool import Connection
from weft.store.runs import fencing, runs
from weft.store.runs.runs import Fence, NewRun
from weft.store.sql import load

_SQL = load(__name__)


async def lock(conn: Connection, project: int, tags: Sequence[str]) -> None:
    """Takes the tags' locks until the caller's transaction ends. Nothing else may be locked before.

    They make the order of numbers the order of commits, which a sequence alone does not give.
    """
    await conn.execute(_SQL.lock, project, list(tags))


async def tag(conn: Connection, fence: Fence, tags: Sequence[str], event: str) -> int | None:
    """Labels a run, in the caller's transaction; `event` is the encoded `execution_tagged` with this call's
    tags.

    Tags that the run has keep their place. Returns the number of the event; None where nothing was new, and none was
    written.
    Raises `RunEnded` and `FenceLost`, and then nothing may be committed.
    """
    await lock(conn, fence.project, tags)
    number = await fencing.hold(conn, fence)
    if not await conn.fetch(_SQL.add, fence.project, fence.run, list(tags)):
        return None
    await fencing.write_event(conn, fence, number, [event])
    return number


async def start_tagged(conn: Connection, project: int, worker: UUID | None, new: NewRun, tags: Sequence[str]) -> UUID:
    """Starts a run that carries tags from its first moment, in the caller's transaction.

    The `execution_tagged` event becomes the last of its first events.
    """
    await lock(conn, project, tags)
    tagged = encode(ExecutionTagged(None, (), tuple(tags)))
    whole = NewRun(new.program, new.entry, [*new.events, tagged], new.open_firings, new.deadline)
    [run] = await runs.start(conn, project, worker, [whole])
    await conn.execute(_SQL.add, project, run, list(tags))
    return run


async def start_child(
    conn: Connection, fence: Fence, new: NewRun, tags: Sequence[str], outcome: Callable[[UUID], str]
) -> tuple[UUID, int]:
    """Starts a run below the caller's, born claimed by the same worker, in the caller's transaction.

    `outcome` encodes the event by which the caller's journal remembers it. Returns the child and that event's number.
    Raises `RunEnded` and `FenceLost`, and then nothing may be committed.
    """
    events = [*new.events, encode(ExecutionTagged(None, (), tuple(tags)))] if tags else new.events
    whole = NewRun(new.program, new.entry, events, new.open_firings, new.deadline)
    if tags:
        await lock(conn, fence.project, tags)
    [run] = await runs.start_below(conn, fence.project, fence.worker, fence.run, [whole])
    if tags:
        await conn.execute(_SQL.add, fence.project, run, list(tags))
    number = await fencing.hold(conn, fence)
    await fencing.write_event(conn, fence, number, [outcome(run)])
    return run, number


async def of_run(conn: Connection, project: int, run: UUID) -> list[str]:
    """The run's tags in the order claimed."""
    return [row["tag"] for row in await conn.fetch(_SQL.of_run, project, run)]


async def of_runs(conn: Connection, project: int, runs: Sequence[UUID]) -> dict[UUID, list[str]]:
    """The tags of many runs, each in the order claimed; a run without any is missing."""
    rows = await conn.fetch(_SQL.of_runs, project, list(runs))
    return {row["run"]: row["tags"] for row in rows}
