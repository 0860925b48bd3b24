"""Nodes of the bench: as little work as a node can do, with the full price of an effect."""

import asyncio
import os
import time

from weft import ExecutionContext, Form, Node, NodeOutput, forms


class Step(Node):
    """Hand a number on, one larger."""

    class Inputs:
        value: int = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int) + 1))


class Sum(Node):
    """Add everything up."""

    from weft import CreatedInputs

    created_inputs = CreatedInputs(int)

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        total = sum(ctx.inputs.get(name, int) for name in ctx.inputs.created())
        await ctx.pulse_downstream(NodeOutput(value=total))


class Hang(Node):
    """Wait until stopped, and note when that was."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped_at.append(time.perf_counter())
            raise


stopped_at: list[float] = []


class Asks(Node):
    """Ask a person, so many times one after the other."""

    class Inputs:
        value: int = 0
        times: int = 1

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        for _ in range(ctx.inputs.get("times", int)):
            await ctx.await_signal(Form("Go on?", [forms.text_input("note")]))
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))


class Chatters(Node):
    """Make the journal long."""

    class Inputs:
        lines: int

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        for at in range(ctx.inputs.get("lines", int)):
            await ctx.log("info", f"line {at}")
        await ctx.pulse_downstream(NodeOutput(value=1))


class Holds(Node):
    """Stay until the process is killed; in a process that is not to hold it, hand the number on."""

    class Inputs:
        value: int

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        if "BENCH_HOLDS" in os.environ:
            await asyncio.Event().wait()
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))
