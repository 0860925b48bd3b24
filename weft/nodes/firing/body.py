"""How a host runs a body, whatever stands behind its context."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable

from weft.errors import NodeError
from weft.nodes.api import Node
from weft.nodes.execution import ExecutionContext
from weft.nodes.firing.context import BaseContext


async def run_body(node: type[Node], context: BaseContext) -> None:
    """Run a body to its end and let go of what it held. Raises what the body raised.

    `Parked` says that the firing waits for `context.asked`. A body that returns after a stop raises CancelledError:
    what it gave is dropped. One that raises something else after a stop raises that; `context.is_cancelled()` tells
    the host.
    """
    body: Callable[[ExecutionContext], Awaitable[object]] = node().run
    try:
        try:
            result = await body(context)
        except BaseException as error:
            context.leave(error)
            raise
        if context.is_cancelled():
            raise CancelledError
        if result is not None:
            raise NodeError(
                f"the body of `{context.node_id}` returned {type(result).__name__}, which nobody would see",
                hint="emit it: `await ctx.pulse_downstream(NodeOutput().set(port, value))`",
            )
        context.finish()
    finally:
        context.end()
        if context.holds:
            await context.release()
