"""The rig keeps the contract of every ExecutionContext."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.unit.testing.contract import NOTHING, SKIPPED, ContextContract, Host, Seen
from tests.unit.testing.wait_contract import WaitContract
from weft import Node, StopSelf
from weft.testing import Rig


class RigHost:
    def __init__(self, rig: Rig) -> None:
        self.rig = rig

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
        for signal in signals:
            if signal is SKIPPED:
                self.rig.skip()
            elif signal is NOTHING:
                self.rig.time_out()
            else:
                self.rig.signal(signal)
        if crash_after is not None:
            self.rig.crash_after(crash_after)
        running = self.rig.start(node, inputs, outputs=outputs, wired=wired)
        if stop_when is not None:
            await stop_when.wait()
            self.rig.cancel()
        outcome = await running
        failed = outcome.failed
        return Seen(
            outputs=outcome.outputs,
            closed=outcome.closed,
            failed=None if failed is None else (failed.message, failed.type),
            traceback=None if failed is None else failed.traceback,
            cancelled=outcome.cancelled,
            logs=outcome.logs,
            costs=outcome.costs,
            tags=self.rig.execution_tags,
            stops=[(tag, stop is StopSelf.INCLUDE) for tag, stop in self.rig.stops],
            left_behind=outcome.left_behind,
            waits=[(wait["kind"], wait["spec"]) for wait in outcome.waits],
            waiting=[wait["kind"] for wait in outcome.waiting],
            skipped=outcome.skipped,
        )


class TestTheRig(ContextContract, WaitContract):
    @pytest.fixture
    def host(self, rig: Rig) -> Host:
        return RigHost(rig)
