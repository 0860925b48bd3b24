"""What the nodes that wait for a time share."""

from datetime import UTC

from weft import ExecutionContext, NodeOutput, Timer


async def pass_on(ctx: ExecutionContext, timer: Timer) -> None:
    """Wait, then emit `wokeAt` and, where one came, the `value`."""
    woke = await ctx.await_signal(timer)
    output = NodeOutput(wokeAt=woke.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z")
    if "value" in ctx.inputs:
        output.set("value", ctx.inputs.raw("value"))
    await ctx.pulse_downstream(output)
