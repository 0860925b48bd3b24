"""Wait: lets some time pass."""

from typing import TypeVar

from weft import Condition, ExecutionContext, Node, Port, Rule, Timer

from ._passing import pass_on
from ._timeout import seconds_of

T = TypeVar("T")


class Wait(Node):
    """Wait so many seconds, then pass the value on. The time goes on while no worker runs.

    `wokeAt` is the instant at which the wait was over, in UTC.
    """

    class Inputs:
        seconds: float = Port(ge=0)
        value: T = Port(wire_only=True, required_when_wired=True)

    class Outputs:
        value: T
        wokeAt: str

    validate = (
        Rule(
            Condition("not", parts=(Condition("config_equals", "seconds", 0),)), "`seconds` is 0, which is no waiting"
        ),
    )

    async def run(self, ctx: ExecutionContext) -> None:
        await pass_on(ctx, Timer(after=seconds_of(ctx, "seconds")))
