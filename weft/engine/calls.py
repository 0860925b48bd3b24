"""What bodies ask of the store at once: tags, stops, child runs. Each in its own transaction, and never twice.

A lost connection leaves open whether a call was carried out; all of them may be repeated, since each leaves a row or an
event by which a repeat knows itself.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from weft.engine.retrying import retrying
from weft.flow.events import Key, RunOutput, decode, encode
from weft.nodes.firing.record import START_RUN
from weft.store.pool import Connection, Database
from weft.store.runs import journal, stops
from weft.store.runs import tags as tag_rows
from weft.store.runs.runs import Fence, NewRun

if TYPE_CHECKING:
    from weft.engine.claiming import Claimer
    from weft.engine.executor import Execution

BeginChild = Callable[[int, str, dict[str, dict[str, Any]]], Awaitable[tuple["Execution", NewRun]]]
"""Makes the first events of a run: project, path of the program, inputs. Raises NodeError for what does not compile."""


class Calls:
    def __init__(
        self,
        database: Database,
        claimer: Claimer,
        *,
        stop_asked: Callable[[int], None],
        begin_child: BeginChild,
        child_started: Callable[[Execution, Fence, int], None],
    ) -> None:
        self._database = database
        self._claimer = claimer
        self._stop_asked = stop_asked
        self._begin_child = begin_child
        self._child_started = child_started

    async def tag(self, fence: Fence, tags: Sequence[str], event: str) -> int | None:
        """Label the run and save the event; its number, or None where the run had all the tags.

        Raises `FenceLost` and `RunEnded` where it is no longer ours to label.
        """

        async def tag(connection: Connection) -> int | None:
            async with connection.transaction():
                return await tag_rows.tag(connection, fence, tags, event)

        return await retrying(self._database, tag)

    async def ask_stop(
        self, fence: Fence, node: str, frames: str, call: int, asks: Sequence[tuple[str, bool]]
    ) -> bool:
        """Queue the stops, `(tag, include)` each. Whether one of them reaches this very run. Raises as `tag` does."""

        async def ask(connection: Connection) -> list[stops.Asked]:
            async with connection.transaction():
                return await stops.ask(connection, fence, node, frames, call, asks)

        asked = await retrying(self._database, ask)
        self._stop_asked(fence.project)
        return any(each.reaches_self for each in asked)

    async def start_child(
        self,
        parent: Execution,
        key: Key,
        position: int,
        program: str,
        inputs: dict[str, dict[str, Any]],
        tags: Sequence[str],
    ) -> UUID:
        """Start a run below the parent's, remembered in its journal at this position. Raises as `tag` does."""
        fence = parent.owned()
        child, new = await self._begin_child(fence.project, program, inputs)
        before = parent.next_seq - 1

        def outcome(run: UUID) -> str:
            return encode(RunOutput(*key, position, START_RUN, {"run": str(run)}))

        async def start(connection: Connection) -> tuple[UUID, int | None]:
            started = await _already_started(connection, fence, key, position, before)
            if started is not None:
                return started, None
            async with connection.transaction():
                return await tag_rows.start_child(connection, fence, new, tags, outcome)

        with self._claimer.starting():
            run, number = await retrying(self._database, start)
        if number is None:
            self._claimer.unsure(run)
        else:
            parent.wrote_elsewhere(number)
            own = Fence(fence.project, run, fence.worker, 1)
            self._child_started(child, own, len(new.events) + bool(tags))
        parent.state.apply(RunOutput(*key, position, START_RUN, {"run": str(run)}))
        return run


async def _already_started(connection: Connection, fence: Fence, key: Key, position: int, after: int) -> UUID | None:
    """The child that an earlier try of this call has started, whose answer was lost."""
    for row in await journal.read(connection, fence.project, fence.run, after=after):
        for each in json.loads(row.events):
            event = decode(each)
            if isinstance(event, RunOutput) and (event.node, event.frames, event.call) == (*key, position):
                return UUID(event.value["run"])
    return None
