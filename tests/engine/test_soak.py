"""A bad day: everything is killed at random while runs start, park, are answered and are stopped.

Fifty runs a second come in, three workers drive them, and every moment one of them or the database server dies. At the
end every run is in the state that its own history allows, the rules of the store hold, and no effect was had more often
than the crashes explain. Half a minute of it each time; `--soak` makes it ten.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import anyio
import asyncpg
import pytest

from tests.engine.faults.outside import REFUSALS, Outside
from tests.engine.scene import Scene, WorkerProcess
from weft.errors import AlreadyAnswered, NotFound, WaitGone
from weft.store.doctor import findings
from weft.store.embedded import embedded_server, postmaster
from weft.store.migrate import migrate
from weft.store.pool import CONNECTION_LOST
from weft.store.runs import stops

SECONDS, SECONDS_OF_A_SOAK = 30.0, 600.0
A_SECOND = 50
WORKERS = 3
BETWEEN_DEATHS = (0.3, 2.0)
ONE_IN_SO_MANY_IS_THE_SERVER = 6
SENDERS = 40
CALM = 120.0
"""Seconds in which everything has to come to its end once nobody dies any more."""


def program(server: str, sender: int) -> str:
    """Stops its elders, has two saved effects and one that nothing protects, waits for a time and for a person."""
    return f"""
claim = TagRun {{ tags: ["s{sender}"] }}
stop = StopTagged {{ _should_flow: claim.done  tags: ["s{sender}"] }}
saved = SavesVisits {{ _should_flow: stop.done  server: "{server}" }}
nap = Naps {{ value: saved.two  seconds: 0.2 }}
again = VisitsAgain {{ server: "{server}"  value: nap.value }}
asks = AsksTwice {{ server: "{server}"  value: again.value }}
last = Visits {{ _should_flow: asks.answers  server: "{server}" }}
"""


@dataclass
class Day:
    """What goes on. `deaths` counts who died; `started` are the runs of which the start was confirmed; `said` is
    what was answered, by token, and `taken` are the tokens of which the answer was confirmed."""

    scene: Scene
    outside: Outside
    folder: Path
    chance: random.Random
    until: float
    deaths: Counter[str] = field(default_factory=Counter)
    workers: dict[int, WorkerProcess] = field(default_factory=dict)
    started: set[UUID] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    resolved: set[str] = field(default_factory=set)
    said: dict[str, str] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return anyio.current_time() >= self.until

    # --- those who work and die ---------------------------------------------------------------------------

    async def work(self, place: int) -> None:
        """A worker; when it dies another one comes."""
        while True:
            try:
                async with self.scene.process(LEASE="5", RENEW="1") as process:
                    self.workers[place] = process
                    await process.process.wait()
            except AssertionError:
                # It died before it was ready.
                await asyncio.sleep(0.2)
            finally:
                self.workers.pop(place, None)

    async def kill(self) -> None:
        while not self.over:
            await asyncio.sleep(self.chance.uniform(*BETWEEN_DEATHS))
            if self.chance.randrange(ONE_IN_SO_MANY_IS_THE_SERVER) == 0:
                self._kill_server()
            elif self.workers:
                victim = self.workers[self.chance.choice(sorted(self.workers))]
                victim.process.kill()
                self.deaths["worker"] += 1

    def _kill_server(self) -> None:
        server = postmaster.read(self.folder / "data")
        if server is not None:
            os.kill(server.pid, signal.SIGKILL)
            self.deaths["server"] += 1

    # --- those outside ------------------------------------------------------------------------------------

    async def start(self) -> None:
        begun = anyio.current_time()
        for number in itertools.count():
            # What could not come in while the server was away comes in after it.
            await anyio.sleep_until(begun + number / A_SECOND)
            if self.over:
                return
            with suppress(*CONNECTION_LOST):
                self.started.update(
                    await self.scene.queue(program(self.outside.address, self.chance.randrange(SENDERS)))
                )

    async def answer(self) -> None:
        """A person for all of them, who leaves every third form alone for a while."""
        words = itertools.count()
        while True:
            try:
                for token in await self._open_forms():
                    if self.over or self.chance.random() < 0.3:
                        said = self.said.setdefault(token, f"answer {next(words)}")
                        assert token not in self.taken, "an answer that was confirmed is gone"
                        await self.scene.answer(token, {"said": said})
                        self.taken.add(token)
            except (*CONNECTION_LOST, AlreadyAnswered, WaitGone, NotFound):
                pass
            await asyncio.sleep(0.1)

    async def _open_forms(self) -> list[str]:
        rows = await self.rows("SELECT token FROM waits WHERE kind = 'form' ORDER BY random() LIMIT 50")
        return [row["token"] for row in rows]

    async def stop(self) -> None:
        """Somebody who stops a sender's runs now and then."""
        while not self.over:
            await asyncio.sleep(0.5)
            tag = f"s{self.chance.randrange(SENDERS)}"
            with suppress(*CONNECTION_LOST):
                await stops.end_tagged(
                    self.scene.database, self.scene.project, tag, "Cancelled by user", {"kind": "user"}
                )

    async def rows(self, query: str, *arguments: Any) -> list[Any]:
        async with self.scene.database.connection() as connection:
            return list(await connection.fetch(query, *arguments))

    async def all_ended(self) -> None:
        while True:
            try:
                if not await self.rows("SELECT FROM runs WHERE ended_at IS NULL LIMIT 1"):
                    return
            except CONNECTION_LOST:
                pass
            await asyncio.sleep(0.1)

    # --- what must hold -----------------------------------------------------------------------------------

    async def check(self) -> dict[str, int]:
        rows = await self.rows("SELECT id, status, error, reason, cause::text AS cause FROM runs")
        assert self.started <= {row["id"] for row in rows}, "a run whose start was confirmed is gone"
        failed = [dict(row) for row in rows if row["status"] == "failed"]
        assert not failed, failed[:3]
        for row in rows:
            await self._check_run(row)
        async with self.scene.database.connection() as connection:
            broken = [each async for each in findings(connection)]
        assert not broken, broken[:5]
        assert self.taken <= self.resolved, "an answer that was confirmed is gone"
        return Counter(row["status"] for row in rows)

    async def _check_run(self, row: Any) -> None:
        run: UUID = row["id"]
        events = await self.scene.events(run)
        kinds = [each["kind"] for each in events]
        self.resolved |= {each["token"] for each in events if each["kind"] == "suspension_resolved"}
        ends = {"completed": "execution_completed", "cancelled": "execution_cancelled"}
        assert kinds[-1] == ends[row["status"]], (run, kinds[-3:])
        assert sum(kind in ends.values() for kind in kinds) == 1, (run, kinds)
        if row["status"] == "cancelled":
            assert row["reason"].startswith(("Stopped by execution", "Cancelled by user")), row["reason"]
        ports = Counter((each["node"], each["port"]) for each in events if each["kind"] == "port_emitted")
        assert set(ports.values()) <= {1}, (run, ports)
        outputs = Counter((each["node"], each.get("call")) for each in events if each["kind"] == "run_output")
        assert set(outputs.values()) <= {1}, (run, outputs)
        resumed = Counter(each["node"] for each in events if each["kind"] == "node_resumed")
        for node, effects in (("saved", ("-one", "-two")), ("asks", ("-first", "-second")), ("last", ("",))):
            for effect in effects:
                had = self.outside.visits[f"{run}/{node}{effect}"]
                # Each time that the body ran again it may have had its effect and not have come to save that.
                assert had <= 1 + resumed[node], (run, node, effect, had, resumed[node])
                if row["status"] == "completed":
                    assert had >= 1, (run, node, effect)
        if row["status"] == "completed":
            assert self.outside.visits[f"{run}/again-flaky"] >= 1 + REFUSALS
            resolved = [each for each in events if each["kind"] == "suspension_resolved" and each["node"] == "asks"]
            said = [each["value"]["said"] for each in resolved]
            tokens = [each["token"] for each in resolved]
            assert said == [self.said[token] for token in tokens] and len(said) == 2, (run, said)


@pytest.mark.timeout(4_000)
async def test_a_bad_day(server_folder: Path, soak: bool, ran: Callable[[str], None]) -> None:
    seconds = SECONDS_OF_A_SOAK if soak else SECONDS
    seed = int(os.environ.get("SEED", random.randrange(10**9)))
    print(f"seed {seed}")
    async with embedded_server(server_folder) as url, Outside.open() as outside, AsyncExitStack() as stack:
        connection = await asyncpg.connect(url)
        await migrate(connection)
        await connection.close()
        scene = await stack.enter_async_context(Scene.open(url))
        chance = random.Random(seed)
        day = Day(scene, outside, server_folder, chance, anyio.current_time() + seconds)
        async with anyio.create_task_group() as group:
            for place in range(WORKERS):
                group.start_soon(day.work, place)
            group.start_soon(day.answer)
            group.start_soon(day.stop)
            group.start_soon(day.kill)
            await day.start()
            try:
                with anyio.fail_after(CALM if not soak else 5 * CALM):
                    await day.all_ended()
            except TimeoutError:
                left = await day.rows("SELECT status, worker, open_firings FROM runs WHERE ended_at IS NULL LIMIT 3")
                raise AssertionError(f"seed {seed}: stuck: {[dict(row) for row in left]}") from None
            group.cancel_scope.cancel()
        counted = await day.check()
    assert counted["completed"] and counted["cancelled"] and day.deaths["worker"]
    ran(f"{len(day.started)} runs, {dict(counted)}, deaths {dict(day.deaths)}, seed {seed}")
