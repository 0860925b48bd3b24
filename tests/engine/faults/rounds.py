"""One round: two runs, a worker in a process of its own, a fault at one point of it, and what must hold all the same.

The elder run waits until the newer one stops it. A person answers every form of the newer one as soon as it stands.
What others do (the person, a second worker that takes over) goes to the database directly; only the victim's way can
break.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID
from zlib import crc32

import anyio

from tests.engine.cast import call_for_claims
from tests.engine.faults.outside import REFUSALS, Outside
from tests.engine.faults.points import Counting, Point
from tests.engine.faults.programs import CHILD, ELDER, child, newer
from tests.engine.network import Link, Network
from tests.engine.scene import Scene
from weft.errors import AlreadyAnswered
from weft.store.doctor import findings
from weft.store.pool import CONNECTION_LOST

LONGEST = 30.0
"""Seconds from the beginning of a round to the end of its runs; what takes longer is stuck."""

CRASHES = ("kill", "freeze")
ENDED = "SELECT bool_and(ended_at IS NOT NULL) FROM runs"
BURIED = "SELECT coalesce(bool_and(ended_at IS NOT NULL), true) FROM workers WHERE pid = $1"


@dataclass
class Round:
    """`fault` is kill, freeze, cut, restart or unknown; None strikes nobody and collects the points in `seen`."""

    scene: Scene
    network: Network
    outside: Outside
    fault: str | None = None
    point: Point | None = None
    restart: Callable[[], Awaitable[None]] | None = None
    seen: list[Point] = field(default_factory=list)
    struck: bool = False
    said: dict[str, str] = field(default_factory=dict)
    """Answers that were taken, by token."""
    _victim: asyncio.subprocess.Process | None = None
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self) -> None:
        """Raises AssertionError where something does not hold."""
        run = elder = None
        try:
            with anyio.fail_after(LONGEST):
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(self._process())
                    [elder] = await self.scene.queue(ELDER, tagged=["chat"])
                    [run] = await self.scene.queue(newer(self.outside.address))
                    await call_for_claims(self.scene)
                    answering = asyncio.create_task(self._answer(run))
                    stack.callback(answering.cancel)
                    ended = asyncio.create_task(self._until(ENDED))
                    stack.callback(ended.cancel)
                    striking = asyncio.create_task(self._strike(stack))
                    stack.callback(striking.cancel)
                    await asyncio.wait([ended, striking], return_when=asyncio.FIRST_COMPLETED)
                    if striking.done():
                        striking.result()
                    await ended
        except TimeoutError:
            raise AssertionError(f"stuck: {await self._rows('SELECT status, open_firings FROM runs')}") from None
        assert run and elder
        await self._check(run, elder)

    # --- the victim and what happens to it ----------------------------------------------------------------

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[None]:
        quick = self.fault == "freeze"
        with tempfile.NamedTemporaryFile(prefix="weft-points-") as found:
            environment = {"FOUND": found.name, "LEASE": "2" if quick else "60", "RENEW": "0.5" if quick else "15"}
            if self.point is not None and self.point.kind == "await":
                acts = {"kill": "kill", "freeze": "freeze"}
                environment |= {"POINT": str(self.point), "ACT": acts.get(str(self.fault), "pause")}
            counting = Counting(self.point, lambda: None, self.seen.append)
            self.network.passing = lambda link, text: self._passing(counting, link, text)
            self._victim = victim = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.engine.faults.victim",
                self.network.url,
                self.outside.address,
                env={**os.environ, **environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert victim.stdout is not None
            assert await victim.stdout.readline() == b"ready\n"
            counting.begun = True
            try:
                yield
            finally:
                if victim.returncode is None:
                    victim.kill()
                await victim.wait()
                self.network.passing = lambda _link, _text: None
                if self.fault is None:
                    self.seen += [Point.read(line) for line in Path(found.name).read_text().splitlines()]

    def _passing(self, counting: Counting, link: Link, text: str) -> None:
        place = f"{link.name}: {' '.join(text.split())[:50]} {crc32(text.encode()):x}"
        before = counting.at("statement", place, "before")
        after = counting.at("statement", place, "after")
        if not (before or after):
            return
        if self.fault == "kill" and before:
            self._kill()
        elif after:
            # The server carries it out, and nobody hears what came of it.
            link.answered = self._kill if self.fault == "kill" else self._reached.set
        else:
            link.cut()
            self._reached.set()

    def _kill(self) -> None:
        assert self._victim is not None
        self._victim.kill()

    async def _strike(self, stack: AsyncExitStack) -> None:
        """Wait for the point, and do what is to be done to the victim from outside."""
        victim = self._victim
        assert victim is not None and victim.stdout is not None and victim.stdin is not None
        told = asyncio.create_task(victim.stdout.readline())
        reached = asyncio.create_task(self._reached.wait())
        await asyncio.wait([told, reached], return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        self.struck = True
        if self.fault in CRASHES:
            self.scene.programs[CHILD] = child(self.outside.address)
            standing_by = asyncio.create_task(self._stand_by())
            stack.push_async_callback(asyncio.wait, [standing_by])
            stack.callback(standing_by.cancel)
        if self.fault == "kill":
            await victim.wait()
            assert victim.returncode == -signal.SIGKILL, "the victim ended by itself"
        elif self.fault == "freeze":
            await self._until(BURIED, victim.pid)
            victim.send_signal(signal.SIGCONT)
        elif told.done():
            assert told.result() == b"reached\n", "the victim ended by itself"
            if self.restart is not None and self.fault == "restart":
                await self.restart()
            else:
                self.network.cut()
            victim.stdin.write(b"\n")
        told.cancel()

    async def _stand_by(self) -> None:
        """A second worker, which takes over."""
        async with self.scene.worker(claims=True):
            await asyncio.Event().wait()

    # --- others -------------------------------------------------------------------------------------------

    async def _answer(self, run: UUID) -> None:
        """A person, who tries again when the database was away."""
        numbers = itertools.count(1)
        while True:
            try:
                for each in await self.scene.waits(run):
                    if each.kind == "form" and each.node == "asks":
                        words = self.said.setdefault(each.token, f"answer {next(numbers)}")
                        await self.scene.answer(each.token, {"said": words})
            except (*CONNECTION_LOST, AlreadyAnswered):
                pass
            await asyncio.sleep(0.02)

    async def _rows(self, query: str, *arguments: Any) -> list[Any]:
        async with self.scene.database.connection() as connection:
            return list(await connection.fetch(query, *arguments))

    async def _until(self, query: str, *arguments: Any) -> None:
        while True:
            try:
                [row] = await self._rows(query, *arguments)
                if row[0]:
                    return
            except CONNECTION_LOST:
                pass
            await asyncio.sleep(0.03)

    # --- what must hold -----------------------------------------------------------------------------------

    async def _check(self, run: UUID, elder: UUID) -> None:
        rows = await self._rows("SELECT id, status, error, reason FROM runs")
        status = {row["id"]: row["status"] for row in rows}
        [below] = set(status) - {run, elder}
        assert status == {run: "completed", below: "completed", elder: "cancelled"}, [dict(row) for row in rows]
        for each in (run, below):
            self._check_once(await self.scene.events(each))
        events = await self.scene.events(run)
        self._check_saved(events)
        self._check_answers(events)
        self._check_effects(run, below)
        async with self.scene.database.connection() as connection:
            broken = [each async for each in findings(connection)]
        assert not broken, broken[:5]
        async with self.scene.database.connection() as connection:
            await connection.execute("DELETE FROM journal")
            await connection.execute("TRUNCATE scopes, workers CASCADE")

    def _check_once(self, events: Sequence[dict[str, Any]]) -> None:
        """Each firing began once and ended once, and each port got one value."""
        nodes = {each["node"] for each in events if each.get("node")}
        for node in nodes - {"gated"}:
            kinds = Counter(each["kind"] for each in events if each.get("node") == node)
            assert (kinds["node_started"], kinds["node_completed"]) == (1, 1), f"{node}: {kinds}"
            assert kinds["node_failed"] + kinds["node_cancelled"] + kinds["node_skipped"] == 0, f"{node}: {kinds}"
        assert [each["kind"] for each in events if each.get("node") == "gated"] in ([], ["node_skipped"])
        ports = Counter((each["node"], each["port"]) for each in events if each["kind"] == "port_emitted")
        assert set(ports.values()) <= {1}, ports
        registered = [each for each in events if each["kind"] == "suspension_registered"]
        assert len(registered) == len({(each["node"], each.get("call")) for each in registered})

    def _check_saved(self, events: Sequence[dict[str, Any]]) -> None:
        """What `ctx.run` gave first is what it gave always, and what went on."""
        outputs = [each for each in events if each["kind"] == "run_output"]
        places = [(each["node"], each.get("call")) for each in outputs]
        assert len(places) == len(set(places)) == 5
        values = [each["value"] for each in outputs if each["node"] == "saved"]
        emitted = [each["value"] for each in events if each["kind"] == "port_emitted" and each["node"] == "saved"]
        assert values == emitted

    def _check_answers(self, events: Sequence[dict[str, Any]]) -> None:
        resolved = {
            each["token"]: each["value"]["said"]
            for each in events
            if each["kind"] == "suspension_resolved" and each["node"] == "asks"
        }
        assert resolved == self.said
        [answers] = [each["value"] for each in events if each["kind"] == "port_emitted" and each["node"] == "asks"]
        assert answers == list(self.said.values()) and len(answers) == 2

    def _check_effects(self, run: UUID, below: UUID) -> None:
        once = ("first", "saved-one", "saved-two", "right", "asks-first", "asks-second", "last")
        expected = {f"{run}/{name}": 1 for name in once} | {f"{below}/begin": 1, f"{below}/end": 1}
        expected[f"{run}/again-flaky"] = 1 + REFUSALS
        ours = (str(run), str(below))
        had = {effect: count for effect, count in self.outside.visits.items() if effect.startswith(ours)}
        assert had.keys() == expected.keys()
        crashes = 1 if self.fault in CRASHES and self.struck else 0
        for effect, least in expected.items():
            assert least <= had[effect] <= least + crashes, f"{effect}: {had[effect]} times with {crashes} crashes"
