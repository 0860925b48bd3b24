"""FirstInOrder: joins branches of which only some bring something."""

from typing import TypeVar

from weft import CreatedInputs, ExecutionContext, Node, NodeOutput

T = TypeVar("T")


class FirstInOrder(Node):
    """Wait until every input has its value or will have none, then pass on the first value in written order.

    Null is a value. Where there is none at all, nothing comes out.
    """

    pure = True
    created_inputs = CreatedInputs(T, required=False)

    class Outputs:
        value: T

    async def run(self, ctx: ExecutionContext) -> None:
        for value in ctx.inputs.created().values():
            await ctx.pulse_downstream(NodeOutput(value=value))
            return
