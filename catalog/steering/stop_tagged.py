"""StopTagged: stops the runs that carry a tag."""

from weft import CreatedInputs, ExecutionContext, Node, NodeOutput, Port, StopSelf

from ._tags import tags_of


class StopTagged(Node):
    """Stop the runs of this project that carry any of these tags; `done` says that the stop is on its way.

    It reaches the runs that were tagged before this one; without a tag of its own, all that are tagged so
    far. With `includeSelf` it reaches every run that carries the tag, and where this run is one of them,
    `done` never comes.
    """

    created_inputs = CreatedInputs(str)

    class Inputs:
        tags: list[str] = Port([])
        includeSelf: bool = False

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        reach = StopSelf.INCLUDE if ctx.inputs.get("includeSelf", bool) else StopSelf.KEEP
        await ctx.stop_tagged(tags_of(ctx), reach)
        await ctx.pulse_downstream(NodeOutput(done=True))
