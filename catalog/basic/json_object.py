"""JsonObject: an object built of inputs of the program's own making."""

from typing import Any

from weft import CreatedInputs, ExecutionContext, Node, NodeOutput


class JsonObject(Node):
    """Build an object: each input is a key, in the order they are written.

    An optional input that has no value is left out; one that is null is null.
    """

    label = "JSON object"
    pure = True
    created_inputs = CreatedInputs()

    class Outputs:
        value: dict[str, Any]

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.created()))
