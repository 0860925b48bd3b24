"""Nodes whose bodies leave a trace outside, to count how often they ran."""

import asyncio
from pathlib import Path

from weft import ExecutionContext, Node, NodeOutput


def note(file: str, line: str) -> None:
    with Path(file).open("a") as out:
        out.write(line + "\n")


class Effect(Node):
    """Leave a line in a file, sleep, then hand on a value."""

    class Inputs:
        file: str
        seconds: float = 0
        value: int = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        note(ctx.inputs.get("file", str), f"{ctx.node_id} {ctx.execution_id}")
        await asyncio.sleep(ctx.inputs.get("seconds", float))
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))


class Once(Node):
    """Do something once through `ctx.run`, log, emit half, and hang until the file `go` exists."""

    class Inputs:
        file: str
        go: str

    class Outputs:
        first: int | None
        second: int

    async def run(self, ctx: ExecutionContext) -> None:
        file = ctx.inputs.get("file", str)
        ctx.log("info", "begun")
        answer = await ctx.run("ask", lambda: note(file, "asked"))
        note(file, "body")
        await ctx.pulse_downstream(NodeOutput(first=answer))
        await ctx.run("between", lambda: None)
        while not Path(ctx.inputs.get("go", str)).exists():
            await asyncio.sleep(0.02)
        await ctx.pulse_downstream(NodeOutput(second=2))


class Fickle(Node):
    """Emit on one port the first time and on the other after a crash."""

    class Inputs:
        file: str

    class Outputs:
        one: int
        other: int

    async def run(self, ctx: ExecutionContext) -> None:
        file = Path(ctx.inputs.get("file", str))
        again = file.exists()
        file.touch()
        await ctx.pulse_downstream(NodeOutput().set("other" if again else "one", 1))
        await ctx.run("saved", lambda: None)
        if not again:
            await asyncio.sleep(60)


class OnlyOnce(Node):
    """Must not run a second time."""

    rerun = False

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await asyncio.sleep(60)


class TagsThenWaits(Node):
    """Tag the run, wait for a file, and tag again."""

    class Inputs:
        go: str

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.tag_execution(["first"])
        while not Path(ctx.inputs.get("go", str)).exists():
            await asyncio.sleep(0.02)
        await ctx.tag_execution(["second"])
        await ctx.pulse_downstream(NodeOutput(done=True))
