"""Debug: shows a value to whoever watches the run."""

import json
from typing import TypeVar

from weft import ExecutionContext, Node

T = TypeVar("T")


class Debug(Node):
    """Show a value: `weft run` prints it, and the run's log keeps it."""

    pure = True

    class Inputs:
        data: T

    async def run(self, ctx: ExecutionContext) -> None:
        data = ctx.inputs.raw("data")
        if not isinstance(data, str):
            data = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        await ctx.log("debug", data)
