"""Cast: a value as one of another type. Which pairs of types are allowed is for the compiler to say."""

from typing import TypeVar

from weft import ExecutionContext, InputError, MustOverride, Node, NodeOutput, Port, convert

T = TypeVar("T")


class Cast(Node):
    """Convert a value to the type that the output `value` declares, or fail naming the part that cannot be."""

    pure = True
    cast_ports = True

    class Inputs:
        value: T = Port(wire_only=True)

    class Outputs:
        value: MustOverride = Port(description="Declare its type: `Cast -> (value: Number) { … }`.")

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            value = convert(ctx.inputs.raw("value"), ctx.output_type("value"))
        except InputError as error:
            raise InputError(f"the input `value` of `{ctx.node_id}`: {error.message}") from None
        await ctx.pulse_downstream(NodeOutput(value=value))
