"""Whatever happens to runs in whatever order, the invariants hold after each step: hypothesis looks for one that breaks
them, on a real store whose worker dies now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.store.invariants import check_invariants
from tests.store.parking import suspended
from tests.store.world import LEASE, World, tag_in
from weft.errors import AlreadyAnswered, FenceLost, RunEnded, WaitGone
from weft.flow.events import NodeCompleted, NodeResumed, encode
from weft.store.runs import journal, runs, stops, waits, workers
from weft.store.runs.journal import Write
from weft.store.runs.runs import Fence

TAGS = st.sampled_from(["chat", "room"])
WHICH = st.integers(0, 50)


class Runs(RuleBasedStateMachine):
    """The runs that this machine knows, each with the fence under which somebody drives it, or None."""

    loop: ClassVar[asyncio.AbstractEventLoop]
    url: ClassVar[str]

    @initialize()
    def begin(self) -> None:
        self.opened = World.open(self.url)
        self.world: World = self.wait(self.opened.__aenter__())
        self.fences: dict[UUID, Fence] = {}
        self.every: list[UUID] = []
        self.asks = 0
        self.waits = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.wait(self.world.cancel(*self.every))
            self.wait(self.opened.__aexit__(None, None, None))

    def wait(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    def pick(self, which: int) -> Fence:
        return list(self.fences.values())[which % len(self.fences)]

    # --- what a worker does -------------------------------------------------------------------------------

    @rule(tag=st.none() | TAGS)
    def start(self, tag: str | None) -> None:
        run = self.wait(self.world.start_one(nodes=["ask"]))
        self.every.append(run)
        self.fences[run] = self.world.fence(run)
        if tag:
            self.wait(self.world.tag(run, tag))

    @precondition(lambda self: self.fences)
    @rule(which=WHICH, tag=TAGS)
    def tag(self, which: int, tag: str) -> None:
        self.wait(self._tag(self.pick(which), tag))

    async def _tag(self, fence: Fence, tag: str) -> None:
        try:
            async with self.world.db.transaction() as conn:
                await tag_in(conn, fence, tag)
        except (FenceLost, RunEnded):
            self.fences.pop(fence.run)

    @precondition(lambda self: self.fences)
    @rule(which=WHICH, tag=TAGS, include=st.booleans())
    def ask_a_stop(self, which: int, tag: str, include: bool) -> None:
        self.wait(self._ask(self.pick(which), tag, include))

    async def _ask(self, fence: Fence, tag: str, include: bool) -> None:
        self.asks += 1
        try:
            async with self.world.db.transaction() as conn:
                await stops.ask(conn, fence, "stop", "[]", self.asks, [(tag, include)])
        except (FenceLost, RunEnded):
            self.fences.pop(fence.run)

    @rule()
    def carry_out(self) -> None:
        self.wait(self.world.carry_out())

    @precondition(lambda self: self.fences)
    @rule(which=WHICH, kind=st.sampled_from(["form", "timer"]))
    def park(self, which: int, kind: str) -> None:
        self.wait(self._park(self.pick(which), kind))

    async def _park(self, fence: Fence, kind: str) -> None:
        status = await self._status(fence.run)
        self.waits += 1
        due = datetime.now(UTC) - timedelta(days=1) if kind == "timer" else None
        write = suspended(
            self.world, fence.run, kind, call=self.waits, due=due, lease=fence.lease, after=status.next_seq - 1
        )
        async with self.world.db.connection() as conn:
            await journal.append(conn, fence.worker, [write])
        self.fences.pop(fence.run)

    @precondition(lambda self: self.fences)
    @rule(which=WHICH)
    def finish(self, which: int) -> None:
        self.wait(self._finish(self.pick(which)))

    async def _finish(self, fence: Fence) -> None:
        last = self.world.last_write(fence.run, NodeCompleted("ask"))
        last.lease = fence.lease
        async with self.world.db.connection() as conn:
            await journal.append_alone(conn, fence.worker, last)
        self.fences.pop(fence.run)

    @rule()
    def claim(self) -> None:
        self.wait(self._claim())

    async def _claim(self) -> None:
        async with self.world.db.connection() as conn:
            for each in await runs.claim(conn, self.world.worker, [self.world.project], 3):
                self.fences[each.run] = Fence(each.project, each.run, self.world.worker, each.lease)

    # --- what others do -----------------------------------------------------------------------------------

    @precondition(lambda self: self.every)
    @rule(which=WHICH)
    def answer(self, which: int) -> None:
        self.wait(self._answer(self.every[which % len(self.every)]))

    async def _answer(self, run: UUID) -> None:
        async with self.world.db.connection() as conn:
            for each in await waits.of_run(conn, self.world.project, run):
                if each.kind == "form":
                    await waits.answer(conn, each.token, '"yes"', "Ann")
                    with pytest.raises((AlreadyAnswered, WaitGone)):
                        await waits.answer(conn, each.token, '"no"', "Ben")

    @rule()
    def wake(self) -> None:
        self.wait(self._wake())

    async def _wake(self) -> None:
        async with self.world.db.connection() as conn:
            await waits.take_due(conn, 10)

    @precondition(lambda self: self.every)
    @rule(which=WHICH)
    def stop(self, which: int) -> None:
        self.wait(self.world.cancel(self.every[which % len(self.every)]))

    @rule(lapses=st.booleans())
    def crash(self, lapses: bool) -> None:
        self.wait(self._crash(lapses))

    async def _crash(self, lapses: bool) -> None:
        """The worker dies, by its lease or by its lock; another takes its place. What it drove is written no more."""
        left = list(self.fences.values())
        async with self.world.db.connection() as conn:
            dead = self.world.worker
            if lapses:
                await conn.execute("UPDATE workers SET lease_until = weft_now() - interval '1 s' WHERE id = $1", dead)
            await workers.release_dead(conn, [] if lapses else [dead])
            for fence in left:
                note = [encode(NodeResumed("ask", (), None))]
                late = Write(fence.project, fence.run, fence.lease, note, '[["ask"]]')
                assert await journal.append(conn, dead, [late]) == {}
            self.world.worker = await workers.register(
                conn, host="here", pid=2, projects=[self.world.project], lease=LEASE
            )
        self.fences.clear()

    # --- what holds always --------------------------------------------------------------------------------

    async def _status(self, run: UUID) -> runs.RunStatus:
        async with self.world.db.connection() as conn:
            status = await runs.status(conn, self.world.project, run)
        assert status is not None
        return status

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            self.wait(self._holds())

    async def _holds(self) -> None:
        async with self.world.db.connection() as conn:
            await check_invariants(conn)


def test_no_order_of_events_breaks_an_invariant(database_url: str, soak: bool) -> None:
    Runs.url = database_url
    with asyncio.Runner() as runner:
        Runs.loop = runner.get_loop()
        run_state_machine_as_test(
            Runs,
            settings=settings(
                max_examples=1000 if soak else 25,
                stateful_step_count=25,
                deadline=None,
                derandomize=not soak,
                suppress_health_check=list(HealthCheck),
            ),
        )
