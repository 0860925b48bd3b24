"""List: a list built of inputs of the program's own making."""

from typing import TypeVar

from weft import CreatedInputs, ExecutionContext, Node, NodeOutput

T = TypeVar("T")


class List(Node):
    """Build a list of the inputs, in the order they are written, whatever their names. All are of one type.

    An optional input that has no value is left out; one that is null is null.
    """

    pure = True
    created_inputs = CreatedInputs(T)

    class Outputs:
        value: list[T]

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput(value=list(ctx.inputs.created().values())))
