"""TagRun: labels this run, so that others can find and stop it."""

from weft import CreatedInputs, ExecutionContext, Node, NodeOutput, Port

from ._tags import tags_of


class TagRun(Node):
    """Label this run with each of its inputs and with `tags`; `done` says that it is stored.

    Any text will do: one that is no legal tag is made into one, the same each time. Give all tags of a run to
    one node, since they then share one place in the order of runs.
    """

    created_inputs = CreatedInputs(str)

    class Inputs:
        tags: list[str] = Port([])

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.tag_execution(tags_of(ctx))
        await ctx.pulse_downstream(NodeOutput(done=True))
