"""A node that steers runs from Python."""

from weft import ExecutionContext, Node, NodeOutput, StopSelf


class ClaimSender(Node):
    """Tag this run with its sender and stop the sender's earlier runs."""

    label = "Claim sender"

    class Inputs:
        sender: str

    class Outputs:
        sender: str

    async def run(self, ctx: ExecutionContext) -> None:
        sender = ctx.inputs.get("sender", str)
        await ctx.tag_execution([sender])
        await ctx.stop_tagged(sender, StopSelf.KEEP)
        await ctx.pulse_downstream(NodeOutput().set("sender", sender))
