"""What a running body is given, with the run's journal and the store behind it.

What an author may do and what is refused is `weft.nodes.firing.context.BaseContext`; here is where effects go:
emissions, outcomes and lines into the run's journal, tags and stops into the store at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from weft.engine.programs import NodeRuntime
from weft.errors import FenceLost, RunEnded
from weft.flow.events import (
    CostReported,
    Event,
    ExecutionTagged,
    Key,
    LogLine,
    PortClosed,
    PortEmitted,
    RunOutput,
    encode,
)
from weft.flow.texts import to_json
from weft.nodes.firing.context import BaseContext
from weft.nodes.firing.ports import Emission
from weft.nodes.firing.record import Recorded

if TYPE_CHECKING:
    from weft.engine.executor import Execution


class RunContext(BaseContext):
    """The context of one firing of a run that this process drives."""

    __slots__ = ("_execution", "_key")

    def __init__(
        self,
        execution: Execution,
        key: Key,
        runtime: NodeRuntime,
        values: Mapping[str, Any],
        recorded: Recorded | None,
    ) -> None:
        super().__init__(runtime.ports, values, key[1], recorded, execution.host.value_limit)
        self._execution = execution
        self._key = key

    @property
    def execution_id(self) -> str:
        return str(self._execution.run)

    @property
    def project_id(self) -> str:
        return self._execution.project_key

    # --- into the journal ---------------------------------------------------------------------------------

    def _emit(self, call: int, emissions: list[Emission]) -> None:
        node, frames = self._key
        record = self._execution.record
        for port, value, text in emissions:
            record(PortEmitted(node, frames, call, port, value, text))

    def _close(self, call: int, port: str) -> None:
        self._execution.record(PortClosed(*self._key, call, port))

    async def _record(self, outcome: RunOutput, text: str | None) -> None:
        self._execution.record(outcome)
        await self._execution.flush()

    def _log(self, level: str, text: str) -> None:
        self._note(LogLine(*self._key, level, text))

    def _cost(self, service: str, amount: float | None) -> None:
        self._note(CostReported(*self._key, service, amount))

    def _note(self, event: Event) -> None:
        execution = self._execution
        if self._key in execution.state.running and not execution.stopped:
            execution.record(event)
        else:
            execution.late(event)

    def _remark(self, text: str) -> None:
        self._execution.remark(self._key, text)

    def _left_behind(self, name: str) -> None:
        text = f"the thread {name} goes on after its firing has ended; what it returns is dropped"
        self._execution.late(LogLine(*self._key, "warning", text))

    # --- into the store -----------------------------------------------------------------------------------

    async def _tag(self, tags: list[str]) -> None:
        event = ExecutionTagged(*self._key, tuple(tags))
        execution = self._execution
        try:
            number = await execution.host.calls.tag(execution.owned(), tags, encode(event))
        except (FenceLost, RunEnded):
            self._lost()
        if number is not None:
            execution.wrote_elsewhere(number)

    async def _stop(self, position: int, tags: Sequence[str], include: bool) -> None:
        node, frames = self._key
        execution = self._execution
        try:
            reaches_self = await execution.host.calls.ask_stop(
                execution.owned(), node, to_json(frames), position, [(tag, include) for tag in tags]
            )
        except (FenceLost, RunEnded):
            self._lost()
        if reaches_self:
            await execution.ended_by_itself()

    async def _start_run(
        self, position: int, program: str, inputs: dict[str, dict[str, Any]], tags: list[str]
    ) -> str:
        execution = self._execution
        try:
            return str(await execution.host.calls.start_child(execution, self._key, position, program, inputs, tags))
        except (FenceLost, RunEnded):
            self._lost()

    def _lost(self) -> NoReturn:
        """The run ended or went to another worker: nothing of this body counts any more."""
        self._execution.stop()
        raise asyncio.CancelledError
