"""Not: the opposite of a Boolean."""

from weft import ExecutionContext, Node, NodeOutput


class Not(Node):
    """Turn `true` into `false` and `false` into `true`."""

    pure = True

    class Inputs:
        value: bool

    class Outputs:
        value: bool

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=not ctx.inputs.get("value", bool)))
