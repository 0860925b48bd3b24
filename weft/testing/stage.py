"""What a test does with a program: start it, answer its waits, let time pass, and look at what came of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from weft.engine.executor import End
from weft.engine.worker import Worker
from weft.flow.events import Frames
from weft.lang.graph import Program
from weft.nodes.waits import WebhookRequest
from weft.store import scratch
from weft.store.runs import endings, journal, runs, scopes, waits
from weft.testing.signals import stored_value

LOOK: Final = 0.005
"""Seconds between two looks whether everything has come to rest."""

PATIENCE: Final = timedelta(seconds=30)
"""How long a run may be busy, in real time, before the test is told so."""


@dataclass(frozen=True, slots=True)
class OpenWait:
    """A wait that a run has open. `spec` says what it waits for, of a form its title and fields; `due` is when a timer
    fires and anything else times out."""

    node: str
    kind: str
    spec: dict[str, Any]
    due: datetime | None
    token: str


class Stage:
    """A program with a database, a worker and a time of its own. Made by `program`."""

    def __init__(self, worker: Worker, project: int, program: Program) -> None:
        self.worker = worker
        self.database = worker.database
        self.project = project
        self.program = program

    async def start(self, *, tags: Sequence[str] = (), deadline: timedelta | None = None) -> StagedRun:
        """Start a run. It goes on by itself."""
        return StagedRun(self, await self.worker.start(self.project, self.program, tags=tags, deadline=deadline))

    async def now(self) -> datetime:
        """The program's time, in UTC. It goes on as ever, and in leaps where the test lets it pass."""
        async with self.database.connection() as connection:
            return (await waits.now(connection)).astimezone(UTC)

    async def advance(self, span: timedelta) -> None:
        """Let this much time pass. What is due meanwhile happens in its order, each at its own time."""
        # What was just started begins to wait first: its time counts from before this.
        await self.settle()
        until = await self.now() + span
        while True:
            await self.settle()
            left = until - await self.now()
            if left <= timedelta(0):
                return
            due_in = await self.due_in()
            await self.leap(left if due_in is None else min(due_in, left))

    async def settle(self) -> None:
        """Wait until nothing goes on: every run has ended or waits for something that is not due.

        Raises AssertionError where something goes on for longer than `PATIENCE`.
        """
        given_up = time.monotonic() + PATIENCE.total_seconds()
        while not await self._at_rest():
            if time.monotonic() > given_up:
                raise AssertionError(f"this does not come to rest: {self._busy()}")
            await asyncio.sleep(LOOK)

    async def _at_rest(self) -> bool:
        if self.worker.executions:
            return False
        due_in = await self.due_in()
        if due_in is not None and due_in <= timedelta(0):
            return False
        async with self.database.connection() as connection:
            return not (await scratch.busy(connection) or self.worker.executions)

    def _busy(self) -> str:
        running = [f"`{node}`" for execution in self.worker.executions.values() for node, _ in execution.state.running]
        return f"{', '.join(running)} still running" if running else "something is due that nothing carries out"

    async def due_in(self) -> timedelta | None:
        """How long until a timer fires, a wait times out, a retry begins or a deadline comes; None for never."""
        async with self.database.connection() as connection:
            return await scopes.next_due(connection)

    async def leap(self, span: timedelta) -> None:
        """Set the time ahead at once; what is due then happens late."""
        async with self.database.connection() as connection:
            await scratch.set_ahead(connection, span)
        await self.worker.set_clock()
        self.worker.waker.look()


class StagedRun:
    """One run of the program. Made by `Stage.start`."""

    def __init__(self, stage: Stage, run: UUID) -> None:
        self.stage = stage
        self.id = run

    # --- looking ------------------------------------------------------------------------------------------

    async def state(self) -> runs.RunStatus:
        """As the store has it at this moment."""
        async with self.stage.database.connection() as connection:
            status = await runs.status(connection, self.stage.project, self.id)
        assert status is not None
        return status

    async def settle(self) -> str:
        """Wait until nothing goes on; then `waiting`, `completed`, `failed` or `cancelled`."""
        await self.stage.settle()
        return (await self.state()).status

    async def end(self) -> End:
        """How the run ends, when all the time passes that it needs.

        Raises AssertionError where it waits for something that no time brings.
        """
        while True:
            await self.stage.settle()
            state = await self.state()
            if state.ended_at is not None:
                return End(state.status, state.error, state.reason)
            due_in = await self.stage.due_in()
            if due_in is not None:
                await self.stage.leap(max(due_in, timedelta(0)))
                continue
            found = await self.waits()
            # What another run's end has just ended is gone by now, and the run goes on.
            if found and await self.stage.due_in() is None:
                named = ", ".join(f"`{each.node}` for a {each.kind}" for each in found)
                raise AssertionError(f"the run does not end by itself: it waits at {named}")

    async def events(self) -> list[dict[str, Any]]:
        """The run's journal, event by event, each a dict with its `kind`."""
        async with self.stage.database.connection() as connection:
            rows = await journal.read(connection, self.stage.project, self.id)
        return [event for row in rows for event in json.loads(row.events)]

    async def outputs(self, node: str, frames: Frames = ()) -> dict[str, Any]:
        """What a firing has emitted, by port."""
        return {
            event["port"]: event["value"]
            for event in await self.events()
            if event["kind"] == "port_emitted" and (event["node"], tuple(event.get("frames", ()))) == (node, frames)
        }

    async def waits(self) -> list[OpenWait]:
        """What the run waits for once nothing goes on, the longest waiting first."""
        await self.stage.settle()
        async with self.stage.database.connection() as connection:
            found = await waits.of_run(connection, self.stage.project, self.id)
        return [OpenWait(each.node, each.kind, json.loads(each.spec), each.due, each.token) for each in found]

    # --- acting -------------------------------------------------------------------------------------------

    async def answer(self, answers: Mapping[str, Any], *, node: str | None = None) -> None:
        """Answer the open form, or that of the node. Raises AssertionError for answers that it does not take."""
        await self._end_wait("form", node, answers)

    async def skip(self, *, node: str | None = None) -> None:
        """Skip the open form, or that of the node."""
        wait = await self._open("form", node)
        await self._resolve(wait, None, skipped=True)

    async def request(
        self,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        node: str | None = None,
    ) -> None:
        """Let a request come to the open webhook, or to that of the node."""
        await self._end_wait("webhook", node, WebhookRequest(body, dict(headers or {}), dict(query or {})))

    async def stop(self, reason: str = "Cancelled by user") -> None:
        """Stop the run, as `weft stop` does."""
        stage = self.stage
        report = await endings.end_runs(stage.database, stage.project, [self.id], reason, {"kind": "user"})
        stage.worker.tell_ended(report.ended)

    async def _end_wait(self, kind: str, node: str | None, payload: Any) -> None:
        wait = await self._open(kind, node)
        described = {"kind": wait.kind, "spec": wait.spec}
        await self._resolve(wait, json.dumps(stored_value(payload, described, wait.node)), skipped=False)

    async def _open(self, kind: str, node: str | None) -> OpenWait:
        """The one open wait of that kind. Raises AssertionError for none, or for several without a node's name."""
        found = await self.waits()
        fitting = [each for each in found if each.kind == kind and node in (None, each.node)]
        if len(fitting) == 1:
            return fitting[0]
        named = ", ".join(f"`{each.node}` for a {each.kind}" for each in found) or "nothing"
        wanted = f"one {kind}" if node is None else f"a {kind} of `{node}`"
        raise AssertionError(f"the test means {wanted}, and there are {len(fitting)}: the run waits at {named}")

    async def _resolve(self, wait: OpenWait, value: str | None, *, skipped: bool) -> None:
        stage = self.stage
        async with stage.database.transaction() as connection:
            answered = await waits.answer(connection, wait.token, value, "test", skipped=skipped)
        stage.worker.tell_answered([answered])
