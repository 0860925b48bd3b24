"""A slow answer, as a language model or a person would give it."""

import asyncio

from weft import ExecutionContext, Node, NodeOutput

SECONDS_A_WORD = 0.5


class DraftAnswer(Node):
    """Think about a question, a word at a time; longer questions take longer."""

    class Inputs:
        question: str

    class Outputs:
        answer: str

    async def run(self, ctx: ExecutionContext) -> None:
        question = ctx.inputs.get("question", str)
        await ctx.log("info", "thinking about it …")
        for _ in question.split():
            # A stop arrives here, as a cancellation: nothing has to be asked or cleaned up.
            await asyncio.sleep(SECONDS_A_WORD)
        await ctx.pulse_downstream(NodeOutput(answer=f"You wrote “{question}” - consider it done."))
