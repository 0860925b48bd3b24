"""WaitForWebhook: waits for a request from outside."""

from typing import Any

from weft import ExecutionContext, Node, NodeOutput, WaitTimedOut, Webhook

from ._timeout import TIMED_OUT, TIMEOUT_SECS, go_on_without, timeout_of


class WaitForWebhook(Node):
    """Wait until somebody sends a request to this wait's own address, which `weft why` shows.

    `body` is the request's JSON, the fields of its form, or its text; the names of the headers are in lower case.
    """

    class Inputs:
        timeoutSecs: float = TIMEOUT_SECS

    class Outputs:
        body: Any
        headers: dict[str, str]
        query: dict[str, str]
        timedOut: bool = TIMED_OUT

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            request = await ctx.await_signal(Webhook(), timeout=timeout_of(ctx))
        except WaitTimedOut as error:
            await go_on_without(ctx, error)
        else:
            await ctx.pulse_downstream(NodeOutput(body=request.body, headers=request.headers, query=request.query))
