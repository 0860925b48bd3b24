"""The time-out that the waiting nodes share: the port `timeoutSecs`, and `timedOut` where it is over."""

from datetime import timedelta

from weft import Condition, ExecutionContext, InputError, NodeOutput, Port, Rule, WaitTimedOut

TIMEOUT_SECS = Port(required=False, ge=0, description="After how many seconds to go on by `timedOut`; without: never.")
TIMED_OUT = Port(description="True when nothing came in time; all other outputs close then.")
TIMEOUT_RULE = Rule(
    Condition("not", parts=(Condition("config_equals", "timeoutSecs", 0),)),
    "`timeoutSecs` is 0, which leaves nobody the time to answer",
)


def seconds_of(ctx: ExecutionContext, name: str) -> timedelta:
    """The length of time on an input that holds seconds. Raises InputError for one beyond all calendars."""
    seconds = ctx.inputs.get(name, float)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise InputError(f"the input `{name}` of `{ctx.node_id}` is {seconds:g} seconds, which is too long") from None


def timeout_of(ctx: ExecutionContext) -> timedelta | None:
    return seconds_of(ctx, "timeoutSecs") if "timeoutSecs" in ctx.inputs else None


async def go_on_without(ctx: ExecutionContext, error: WaitTimedOut) -> None:
    """Emit `timedOut`; where nothing hangs on it, the time-out is the node's failure."""
    if not ctx.is_output_wired("timedOut"):
        raise WaitTimedOut(
            f"`{ctx.node_id}`: {error.message}",
            hint=f"wire `{ctx.node_id}.timedOut` to what should happen then",
        ) from None
    await ctx.pulse_downstream(NodeOutput(timedOut=True))
