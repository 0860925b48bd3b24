"""WaitUntil: waits for an instant."""

from typing import TypeVar

from weft import ExecutionContext, InputError, Node, NodeError, Port, Timer

from ._passing import pass_on

T = TypeVar("T")


class WaitUntil(Node):
    """Wait until an instant, then pass the value on. One that is over already is no waiting.

    `until` is an ISO 8601 text with an offset from UTC: `2030-01-31T09:00:00+01:00`. `wokeAt` is the instant at
    which the wait was over, in UTC.
    """

    class Inputs:
        until: str
        value: T = Port(wire_only=True, required_when_wired=True)

    class Outputs:
        value: T
        wokeAt: str

    async def run(self, ctx: ExecutionContext) -> None:
        until = ctx.inputs.get("until", str)
        try:
            timer = Timer(until=until)
        except NodeError as error:
            raise InputError(f"the input `until` of `{ctx.node_id}`: {error.message}", hint=error.hint) from None
        await pass_on(ctx, timer)
