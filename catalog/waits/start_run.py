"""StartRun: runs another program below this run."""

from typing import Any

from weft import ExecutionContext, InputError, Node, NodeOutput, Port, normalise_tag


class StartRun(Node):
    """Start a run of another program of the project, and wait for its end unless `wait` is false.

    `program` is a path from the project's root; `inputs` is `{ node: { port: value } }`, each filling an input of
    the other program that nothing is wired to. `run` is the id of the run, `status` is `completed`, `failed` or
    `cancelled`, and `reason` says why it is not completed. The run ends with this one at the latest.
    """

    class Inputs:
        program: str = Port(literal_only=True)
        inputs: dict[str, Any] = Port({})
        tags: list[str] = Port([])
        wait: bool = True

    class Outputs:
        run: str
        status: str
        reason: str

    async def run(self, ctx: ExecutionContext) -> None:
        child = await ctx.start_run(ctx.inputs.get("program", str), ctx.inputs.get("inputs", dict), tags=_tags(ctx))
        output = NodeOutput(run=child.run)
        if ctx.inputs.get("wait", bool):
            end = await ctx.await_signal(child)
            output.set("status", end["status"])
            if end["reason"] is not None:
                output.set("reason", end["reason"])
        await ctx.pulse_downstream(output)


def _tags(ctx: ExecutionContext) -> list[str]:
    tags = []
    for at, text in enumerate(ctx.inputs.list("tags", str)):
        try:
            tags.append(normalise_tag(text))
        except InputError as error:
            raise InputError(f"the input `tags[{at}]` of `{ctx.node_id}`: {error.message}") from None
    return tags
