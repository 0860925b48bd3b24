"""What the contract of contexts does not show: what a context refuses, and the house rules of importing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import ExecutionContext, Node, NodeError, NodeOutput
from weft.lang.graph import Node as CompiledNode
from weft.nodes.firing.context import BaseContext
from weft.nodes.firing.held import Flag, close_http_client, http_client
from weft.nodes.firing.ports import NodePorts
from weft.testing import Rig

ROOT = Path(__file__).parents[3]


async def failing(rig: Rig, body: Any) -> str:
    class Does(Node):
        """Do it."""

        class Outputs:
            value: Any

        async def run(self, ctx: ExecutionContext) -> None:
            await body(ctx)

    failed = (await rig.run(Does)).failed
    assert failed is not None
    return failed.message


@pytest.mark.parametrize("level", ["warn", "INFO", "", None])
async def test_an_unknown_level_is_refused(rig: Rig, level: Any) -> None:
    async def body(ctx: ExecutionContext) -> None:
        ctx.log(level, "text")

    assert "there is no log level" in await failing(rig, body)


@pytest.mark.parametrize("amount", ["1", True, float("nan"), float("inf")])
async def test_a_cost_is_a_number_or_unknown(rig: Rig, amount: Any) -> None:
    async def body(ctx: ExecutionContext) -> None:
        ctx.report_cost("llm", amount)

    assert "a cost is a number" in await failing(rig, body)


async def test_only_a_node_output_is_emitted(rig: Rig) -> None:
    async def body(ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream({"value": 1})  # type: ignore[arg-type]

    assert "takes a NodeOutput" in await failing(rig, body)


async def test_stop_self_is_one_of_two_words(rig: Rig) -> None:
    async def body(ctx: ExecutionContext) -> None:
        await ctx.stop_tagged("a", "keep")  # type: ignore[arg-type]

    assert "StopSelf.KEEP or StopSelf.INCLUDE" in await failing(rig, body)


async def test_what_is_left_of_a_failed_body_can_do_nothing(rig: Rig) -> None:
    go = asyncio.Event()
    late: list[asyncio.Task[None]] = []

    async def body(ctx: ExecutionContext) -> None:
        async def emit_later() -> None:
            await go.wait()
            await ctx.pulse_downstream(NodeOutput(value=1))

        late.append(asyncio.create_task(emit_later()))
        raise NodeError("no")

    assert await failing(rig, body) == "no"
    go.set()
    with pytest.raises(NodeError, match="has ended"):
        await late[0]


async def test_positions_are_taken_in_the_order_of_the_calls(rig: Rig) -> None:
    class Gathers(Node):
        """Gather."""

        class Outputs:
            value: list[str]

        async def run(self, ctx: ExecutionContext) -> None:
            first_done = asyncio.Event()

            async def slow() -> str:
                await first_done.wait()
                return "slow"

            async def quick() -> str:
                first_done.set()
                return "quick"

            names = await asyncio.gather(ctx.run("same", slow), ctx.run("same", quick))
            await ctx.pulse_downstream(NodeOutput(value=names))

    rig.crash_after(2)
    outcome = await rig.run(Gathers)
    assert outcome.outputs == {"value": ["slow", "quick"]}
    assert outcome.saved == [("same", "slow"), ("same", "quick")]


async def test_a_thread_that_the_bodys_own_time_out_leaves_is_told_to_stop(rig: Rig) -> None:
    class TimesOut(Node):
        """Time out."""

        class Outputs:
            stopped: bool

        async def run(self, ctx: ExecutionContext) -> None:
            told = asyncio.Event()
            loop = asyncio.get_running_loop()

            def work(flag: Any) -> None:
                while not flag.is_set():
                    time.sleep(0.001)
                loop.call_soon_threadsafe(told.set)

            try:
                async with asyncio.timeout(0.01):
                    await ctx.thread(work)
            except TimeoutError:
                await told.wait()
                await ctx.pulse_downstream(NodeOutput(stopped=ctx.is_cancelled()))

    outcome = await rig.run(TimesOut)
    assert outcome.outputs == {"stopped": False}
    assert outcome.left_behind == []


@pytest.mark.parametrize("error", [StopIteration("x"), SystemExit(3), KeyboardInterrupt()])
async def test_a_thread_may_end_with_anything(rig: Rig, error: BaseException) -> None:
    def work(flag: Any) -> None:
        raise error

    async def body(ctx: ExecutionContext) -> None:
        await ctx.thread(work)

    assert "the thread" in await failing(rig, body)


async def test_a_program_that_is_not_there_is_a_failure(rig: Rig) -> None:
    async def body(ctx: ExecutionContext) -> None:
        await ctx.subprocess("/there/is/no/such/program")

    assert "/there/is/no/such/program" in await failing(rig, body)


@pytest.mark.parametrize("turns", range(8))
async def test_a_process_that_is_just_starting_goes_with_the_firing(rig: Rig, turns: int) -> None:
    mark = f"weft-test-{os.getpid()}-{turns}"
    late: list[asyncio.Task[Any]] = []

    async def body(ctx: ExecutionContext) -> None:
        late.append(asyncio.create_task(ctx.subprocess("sh", "-c", 'sh -c "sleep 999; :" $0 & wait', mark)))
        for _ in range(turns):
            await asyncio.sleep(0)
        late[0].cancel()
        raise NodeError("no")

    assert await failing(rig, body) == "no"
    await asyncio.wait(late)
    while marked(mark):
        await asyncio.sleep(0.001)


def marked(mark: str) -> list[str]:
    """The live processes that carry the mark among their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


async def test_a_grandchild_that_left_its_group_holds_nothing_up(rig: Rig) -> None:
    class Daemons(Node):
        """Let a grandchild go its own way with our pipe."""

        class Outputs:
            pid: int

        async def run(self, ctx: ExecutionContext) -> None:
            process = await ctx.subprocess("setsid", "-f", "sh", "-c", "echo $$; exec sleep 60", stdout=-1)
            assert process.stdout is not None
            await ctx.pulse_downstream(NodeOutput(pid=int(await process.stdout.readline())))

    begun = time.monotonic()
    outcome = await rig.run(Daemons)
    assert outcome.failed is None
    assert time.monotonic() - begun < 10
    os.kill(outcome.outputs["pid"], signal.SIGKILL)


async def test_a_flag_is_set_for_good() -> None:
    flag = Flag()
    waiting = asyncio.create_task(flag.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    flag.set()
    flag.set()
    await waiting
    await flag.wait()
    assert flag.is_set()


async def test_one_http_client_a_loop() -> None:
    client = http_client()
    assert http_client() is client
    await close_http_client()
    assert client.is_closed
    assert http_client() is not client
    await close_http_client()
    await close_http_client()


def test_a_stop_before_the_flag_is_asked_for_is_seen_by_it() -> None:
    context = BaseContext(NodePorts(CompiledNode("a", "A")), {})
    context.cancel()
    assert context.is_cancelled()
    assert context.cancellation().is_set()


def test_every_name_of_weft_is_there() -> None:
    for name in weft.__all__:
        assert getattr(weft, name) is not None
        assert name in dir(weft)
    with pytest.raises(AttributeError, match="no attribute 'Nodes'"):
        weft.Nodes  # noqa: B018


def test_import_weft_is_light() -> None:
    code = """
import sys
before = set(sys.modules)
import weft
print(sorted(set(sys.modules) - before - {"__future__"}))
from weft import Node, node, Port, NodeOutput, StopSelf, ExecutionContext, NodeError
import weft.nodes.registry
weft.nodes.registry.Registry.load()
print(sorted({"asyncio", "pydantic", "httpx", "asyncpg", "lark", "anyio", "structlog"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split("\n")[:2] == ["['weft']", "[]"]
