"""Nodes of the bench: as little work as a node can do, with the full price of an effect."""

import asyncio
import time

from weft import ExecutionContext, Node, NodeOutput


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
