"""Nodes for the engine's tests."""

import asyncio

from weft import ExecutionContext, Node, NodeOutput


class Step(Node):
    """Hand a number on, one larger."""

    class Inputs:
        value: int = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int) + 1))


class Sleep(Node):
    """Sleep, then hand on the value."""

    class Inputs:
        value: int = 0
        seconds: float = 60

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await asyncio.sleep(ctx.inputs.get("seconds", float))
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))
