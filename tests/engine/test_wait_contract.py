"""Waits of a real run keep the contract: its parked runs leave memory, and each answer goes through the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine.scene import KEY, Scene
from tests.engine.test_contract import Classes, EngineHost, around, emitting
from tests.engine.test_contract import shared_database_url as shared_database_url
from tests.store.invariants import check_invariants
from tests.unit.testing.contract import NOTHING, SKIPPED, Host, Seen
from tests.unit.testing.wait_contract import WaitContract
from weft import Node
from weft.engine import executor
from weft.engine.context import RunContext
from weft.engine.programs import ProjectCode
from weft.engine.suspending import Registrar
from weft.engine.worker import Worker, open_worker
from weft.settings import EngineSettings
from weft.store.runs import endings, waits
from weft.store.runs.waits import Wait
from weft.testing.signals import stored_value


class Death:
    """A process that dies with the effect of that number: it is stored, and the body goes no further.

    Where that effect is a wait the process has nothing left to lose: the run is parked.
    """

    def __init__(self, after: int | None) -> None:
        self.left = after
        self.came = asyncio.Event()
        self.parks = False

    def count(self) -> bool:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.came.set()
        return self.left == 0

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        death, suspension = self, Registrar.suspension

        class Dying(RunContext):
            __slots__ = ()

            async def _halt(self) -> None:
                await self._execution.flush()
                if death.count():
                    await asyncio.Event().wait()

            def _emit(self, call: int, emissions: Any) -> Any:
                super()._emit(call, emissions)
                return self._halt()

            async def _record(self, outcome: Any, text: str | None) -> None:
                await super()._record(outcome, text)
                await self._halt()

        def counted(registrar: Registrar, *args: Any) -> Any:
            death.parks = death.count()
            return suspension(registrar, *args)

        patch.setattr(executor, "RunContext", Dying)
        patch.setattr(Registrar, "suspension", counted)


class WaitingHost(EngineHost):
    async def run(
        self,
        node: type[Node],
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Mapping[str, Any] | Sequence[str] = (),
        wired: Sequence[str] | None = None,
        crash_after: int | None = None,
        stop_when: asyncio.Event | None = None,
        signals: Sequence[Any] = (),
    ) -> Seen:
        program = around(node, inputs or {}, outputs, wired)
        settings = EngineSettings(renew=timedelta(seconds=0.1))
        code = ProjectCode(self.scene.project, KEY, Classes(node, emitting(inputs or {})))
        death, queue = Death(crash_after), list(signals)
        async with open_worker(self.scene.database, [code], settings, claims=False) as worker:
            with self.patch.context() as patch:
                death.patch(patch)
                run = await worker.start(self.scene.project, program)
                await self.follow(worker, run, queue, death.came)
            if death.came.is_set() and not death.parks:
                async with open_worker(self.scene.database, [code], EngineSettings()) as other:
                    await self.give_up(worker, other)
                    await self.follow(other, run, queue)
            elif death.parks:
                await self.scene.until_status(run, "waiting")
        if death.parks:
            async with open_worker(self.scene.database, [code], EngineSettings()) as other:
                await self.follow(other, run, queue)
        seen = await self.seen(run, program.nodes[-1])
        await endings.end_runs(self.scene.database, self.scene.project, [run], "Seen enough", {"kind": "user"})
        return seen

    async def follow(self, worker: Worker, run: UUID, signals: list[Any], until: asyncio.Event | None = None) -> None:
        """Give the signals to the run's waits until it has ended, or waits for what nobody brings."""
        while not (until and until.is_set()):
            status = await self.scene.status(run)
            if status.ended_at is not None:
                return
            if status.status == "waiting":
                taking = await self.open_waits(run)
                answered = [each for each in taking if each.kind != "timer"]
                if answered and signals:
                    signal = signals.pop(0)
                    if signal is not NOTHING:
                        await self.answer(worker, answered[0], signal)
                elif all(each.due is None for each in taking) and taking:
                    return
            await asyncio.sleep(0.005)

    async def open_waits(self, run: UUID) -> list[Wait]:
        async with self.scene.database.connection() as connection:
            found = await waits.of_run(connection, self.scene.project, run)
        return sorted(found, key=lambda each: (each.call, each.part))

    async def answer(self, worker: Worker, wait: Wait, signal: Any) -> None:
        skipped, value = signal is SKIPPED, None
        if not skipped:
            value = json.dumps(stored_value(signal, {"kind": wait.kind, "spec": json.loads(wait.spec)}, wait.node))
        async with self.scene.database.transaction() as connection:
            answered = await waits.answer(connection, wait.token, value, "test", skipped=skipped)
        worker.tell_answered([answered])

    async def seen(self, run: UUID, node: Any) -> Seen:
        seen = await super().seen(run, node)
        for event in await self.scene.events(run):
            if event["kind"] == "suspension_registered":
                seen.waits += [(each["kind"], each["spec"]) for each in event["waits"]]
            if event["kind"] == "node_skipped" and event["reason"] == "wait_skipped":
                seen.skipped = True
        seen.waiting = [each.kind for each in await self.open_waits(run)]
        return seen


class TestARunThatWaits(WaitContract):
    @pytest.fixture
    async def host(self, shared_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
        async with Scene.open(shared_database_url) as scene:
            yield WaitingHost(scene, monkeypatch)
            async with scene.database.connection() as connection:
                await check_invariants(connection)
