"""All: goes on only where nothing says no."""

from weft import CreatedInputs, ExecutionContext, InputError, Node, NodeOutput


class All(Node):
    """Say yes where no input is `false`; otherwise nothing comes out, so what hangs on `yes` does not run.

    Only `false` itself says no: 0, an empty text and null do not.
    """

    pure = True
    created_inputs = CreatedInputs()

    class Outputs:
        yes: bool

    async def run(self, ctx: ExecutionContext) -> None:
        values = ctx.inputs.created().values()
        if not values:
            raise InputError(
                f"`{ctx.node_id}` has no inputs to look at",
                hint="give it some, under any names: `All { paid: order.paid  stocked: store.ok }`",
            )
        if not any(value is False for value in values):
            await ctx.pulse_downstream(NodeOutput(yes=True))
