"""Nodes whose effects are counted by a server outside (`tests/engine/faults/outside.py`)."""

import asyncio
from datetime import timedelta

from weft import ExecutionContext, Form, Node, NodeOutput, Retry, forms


async def visit(ctx: ExecutionContext, effect: str = "") -> int:
    """Have the effect of this node, named after run and node; the number that the server gave to this visit."""
    host, port = ctx.inputs.get("server", str).split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /{ctx.execution_id}/{ctx.node_id}{effect} HTTP/1.0\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.0 200 "):
        raise ValueError("the server refused")
    return int(body)


class Visits(Node):
    """An effect that nothing protects: a crash in the middle of the body may repeat it."""

    class Inputs:
        server: str
        value: int = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await visit(ctx)
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))


class SavesVisits(Node):
    """Two effects whose results are saved, then handed on one after the other."""

    class Inputs:
        server: str
        value: int = 0

    class Outputs:
        one: int
        two: int

    async def run(self, ctx: ExecutionContext) -> None:
        one = await ctx.run("one", lambda: visit(ctx, "-one"))
        await ctx.pulse_downstream(NodeOutput(one=one))
        two = await ctx.run("two", lambda: visit(ctx, "-two"))
        await ctx.pulse_downstream(NodeOutput(two=two))


class VisitsAgain(Node):
    """Refused by the server the first two times, and tried again."""

    retry = Retry(attempts=5, first=timedelta(milliseconds=20))

    class Inputs:
        server: str
        value: int = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await visit(ctx, "-flaky")
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))


class AsksTwice(Node):
    """Two forms, one after the other, with a saved effect after each; hands on both answers."""

    class Inputs:
        server: str
        value: int = 0

    class Outputs:
        answers: list[str]

    async def run(self, ctx: ExecutionContext) -> None:
        answers = []
        for turn in ("first", "second"):
            answer = await ctx.await_signal(Form(turn, [forms.text_input("said")]))
            answers.append(answer["said"])
            await ctx.run(turn, lambda turn=turn: visit(ctx, f"-{turn}"))
        await ctx.pulse_downstream(NodeOutput(answers=answers))


class Adds(Node):
    """Hand on the sum, and a gate that is shut."""

    class Inputs:
        a: int
        b: int

    class Outputs:
        sum: int
        shut: bool

    async def run(self, ctx: ExecutionContext) -> None:
        total = ctx.inputs.get("a", int) + ctx.inputs.get("b", int)
        await ctx.pulse_downstream(NodeOutput(sum=total, shut=False))
