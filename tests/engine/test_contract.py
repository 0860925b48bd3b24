"""The context of a real run keeps the contract of every ExecutionContext.

A program is built around the class under test: a node that emits its inputs, the node, and its wires. Only where a test
needs a crash does the context differ from a run's own: it comes to a halt once so many effects are stored, as a process
does that dies there, and another worker takes the run over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine.scene import KEY, Scene
from tests.store.invariants import check_invariants
from tests.unit.testing.contract import ContextContract, Host, Seen
from weft import ExecutionContext, Node, NodeOutput
from weft.engine import executor
from weft.engine.context import RunContext
from weft.engine.programs import ProjectCode
from weft.engine.worker import Worker, open_worker
from weft.lang.graph import Edge, OutputPort, Program
from weft.lang.graph import Node as ProgramNode
from weft.nodes.reading.spec import spec_of
from weft.nodes.registry import Registry
from weft.settings import EngineSettings
from weft.store.notify import Notice
from weft.store.runs import endings, workers
from weft.testing.node import compiled


class Classes(Registry):
    """Node types that stand in no file."""

    def __init__(self, *nodes: type[Node]) -> None:
        super().__init__()
        self._classes = {spec_of(node).type: node for node in nodes}

    def node_class(self, type_name: str) -> type[Node] | None:
        return self._classes.get(type_name)


def emitting(values: Mapping[str, Any]) -> type[Node]:
    class Source(Node):
        """Emit the values."""

        async def run(self, ctx: ExecutionContext) -> None:
            await ctx.pulse_downstream(NodeOutput().update(values))

    return Source


def around(
    node: type[Node], inputs: Mapping[str, Any], outputs: Mapping[str, Any] | Sequence[str], wired: Sequence[str] | None
) -> Program:
    """Source, node, and a wire a given value."""
    target = compiled(spec_of(node), inputs, outputs, wired)
    driven = [port.name for port in target.inputs if port.wired]
    source = ProgramNode("source", "Source", outputs=tuple(OutputPort(name, "T", True) for name in driven))
    edges = tuple(Edge("source", name, target.id, name) for name in driven)
    return Program("main", (source, target) if driven else (target,), edges)


def halting(after: int, reached: asyncio.Event) -> type[RunContext]:
    """A context of a process that dies with the effect of that number: the effect is stored, the call never returns."""
    stored = 0

    class Halting(RunContext):
        __slots__ = ()

        async def _halt(self) -> None:
            nonlocal stored
            await self._execution.flush()
            stored += 1
            if stored == after:
                reached.set()
                await asyncio.Event().wait()

        def _emit(self, call: int, emissions: Any) -> Any:
            super()._emit(call, emissions)
            return self._halt()

        def _close(self, call: int, port: str) -> Any:
            super()._close(call, port)
            return self._halt()

        async def _record(self, outcome: Any, text: str | None) -> None:
            await super()._record(outcome, text)
            await self._halt()

        async def _tag(self, tags: list[str]) -> None:
            await super()._tag(tags)
            await self._halt()

        async def _stop(self, position: int, tags: Sequence[str], include: bool) -> None:
            await super()._stop(position, tags, include)
            await self._halt()

    return Halting


class EngineHost:
    def __init__(self, scene: Scene, patch: pytest.MonkeyPatch) -> None:
        self.scene = scene
        self.patch = patch

    async def run(
        self,
        node: type[Node],
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Mapping[str, Any] | Sequence[str] = (),
        wired: Sequence[str] | None = None,
        crash_after: int | None = None,
        stop_when: asyncio.Event | None = None,
    ) -> Seen:
        program = around(node, inputs or {}, outputs, wired)
        # A worker that was given up for dead finds out when it renews its lease.
        settings = EngineSettings(renew=timedelta(seconds=0.1))
        code = ProjectCode(self.scene.project, KEY, Classes(node, emitting(inputs or {})))
        async with open_worker(self.scene.database, [code], settings, claims=False) as worker:
            if crash_after is None:
                run = await worker.start(self.scene.project, program)
                if stop_when is not None:
                    await stop_when.wait()
                    await self.stop(worker, run)
            else:
                run = await self.crash(worker, program, crash_after)
                async with open_worker(self.scene.database, [code], EngineSettings()) as other:
                    await self.give_up(worker, other)
                    await other.ended(run, self.scene.project)
            await worker.ended(run, self.scene.project)
        return await self.seen(run, program.nodes[-1])

    async def stop(self, worker: Worker, run: UUID) -> None:
        scene = self.scene
        report = await endings.end_runs(scene.database, scene.project, [run], "Cancelled by user", {"kind": "user"})
        worker.tell_ended(report.ended)

    async def crash(self, worker: Worker, program: Program, after: int) -> UUID:
        """The run, of which so many effects are stored, and whose body goes no further."""
        reached = asyncio.Event()
        with self.patch.context() as patch:
            patch.setattr(executor, "RunContext", halting(after, reached))
            run = await worker.start(self.scene.project, program)
            await reached.wait()
        return run

    async def give_up(self, dead: Worker, other: Worker) -> None:
        async with self.scene.database.connection() as connection:
            # Whoever looks first gives back what it owned: this, or a worker's own look.
            await workers.release_dead(connection, [dead.id])
        other.heard(Notice("ready", self.scene.project))

    async def seen(self, run: UUID, node: ProgramNode) -> Seen:
        """What the stored record says."""
        seen = Seen()
        for event in await self.scene.events(run):
            if event.get("node") != node.id:
                continue
            match event["kind"]:
                case "port_emitted":
                    seen.outputs[event["port"]] = event["value"]
                case "port_closed":
                    seen.closed.append(event["port"])
                case "node_failed":
                    seen.failed = (event["error"]["message"], event["error"]["type"])
                    seen.traceback = event["error"].get("traceback")
                case "node_cancelled":
                    seen.cancelled = True
                case "log_line":
                    seen.logs.append((event["level"], event["text"]))
                case "cost_reported":
                    seen.costs.append((event["service"], event.get("amount")))
                case "execution_tagged":
                    seen.tags.append(event["tags"])
        silent = [port.name for port in node.outputs if port.name not in seen.outputs]
        seen.closed += [name for name in silent if name not in seen.closed]
        async with self.scene.database.connection() as connection:
            rows = await connection.fetch("SELECT tag, include FROM stops WHERE run = $1 ORDER BY id", run)
        seen.stops = [(row["tag"], row["include"]) for row in rows]
        seen.left_behind = [event["text"] for event in await self.scene.aftermath(run) if event["kind"] == "log_line"]
        return seen


@pytest.fixture(scope="module")
def shared_database_url(_server: Any) -> Iterator[str]:
    url = _server.create(migrated=True)
    yield url
    _server.drop(url)


class TestARun(ContextContract):
    @pytest.fixture
    async def host(self, shared_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
        async with Scene.open(shared_database_url) as scene:
            yield EngineHost(scene, monkeypatch)
            async with scene.database.connection() as connection:
                await check_invariants(connection)
