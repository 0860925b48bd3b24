"""The time-out that the waiting nodes share: the port `timeoutSecs`, and `timedOut` where it is over."""

from datetime import timedelta

from weft import ExecutionContext, InputError, NodeOutput, Port, WaitTimedOut

# With a default the node runs where nothing else is wired to it or written on it.
TIMEOUT_SECS = Port(0, ge=0, description="After how many seconds to go on by `timedOut`; 0: never.")
TIMED_OUT = Port(description="True when nothing came in time; all other outputs close then.")


def seconds_of(ctx: ExecutionContext, name: str) -> timedelta:
    """The length of time on an input that holds seconds. Raises InputError for one beyond all calendars."""
    seconds = ctx.inputs.get(name, float)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise InputError(f"the input `{name}` of `{ctx.node_id}` is {seconds:g} seconds, which is too long") from None


def timeout_of(ctx: ExecutionContext) -> timedelta | None:
    timeout = seconds_of(ctx, "timeoutSecs") if "timeoutSecs" in ctx.inputs else None
    return timeout or None


async def go_on_without(ctx: ExecutionContext, error: WaitTimedOut) -> None:
    """Emit `timedOut`; where nothing hangs on it, the time-out is the node's failure."""
    if not ctx.is_output_wired("timedOut"):
        raise WaitTimedOut(
            f"`{ctx.node_id}`: {error.message}",
            hint=f"wire `{ctx.node_id}.timedOut` to what should happen then",
        ) from None
    await ctx.pulse_downstream(NodeOutput(timedOut=True))
