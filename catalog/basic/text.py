"""Text: a written text as a value on a wire."""

from weft import ExecutionContext, Node, NodeOutput, Port


class Text(Node):
    """Hold a text."""

    pure = True

    class Inputs:
        value: str = Port(widget="textarea")

    class Outputs:
        value: str

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", str)))
