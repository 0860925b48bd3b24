"""Nodes that tag and stop from Python, and bodies that a stop finds in the middle of something."""

import asyncio
import random
import time
from pathlib import Path

from weft import ExecutionContext, Node, NodeOutput, StopSelf


async def appears(file: str) -> None:
    """Returns once the file is there."""
    while not Path(file).exists():
        await asyncio.sleep(0.005)


def note(file: str, line: str) -> None:
    with Path(file).open("a") as out:
        out.write(line + "\n")


class ClaimsAndStops(Node):
    """Tag the run, then stop what was tagged before; rest for a moment around each step."""

    class Inputs:
        tags: list[str]
        rest: float = 0

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        longest = ctx.inputs.get("rest", float)
        tags = ctx.inputs.list("tags", str)
        await asyncio.sleep(random.random() * longest)
        await ctx.tag_execution(tags)
        await asyncio.sleep(random.random() * longest)
        await ctx.stop_tagged(random.sample(tags, len(tags)), StopSelf.KEEP)
        await asyncio.sleep(random.random() * longest)
        await ctx.pulse_downstream(NodeOutput(done=True))


class TagsAtOnce(Node):
    """Tag the run, wait for a file, then stop: in a body that a crash may make run again."""

    class Inputs:
        tag: str
        go: str
        include: bool = False

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        tag = ctx.inputs.get("tag", str)
        await ctx.tag_execution([tag])
        await appears(ctx.inputs.get("go", str))
        await ctx.stop_tagged(tag, StopSelf.INCLUDE if ctx.inputs.get("include", bool) else StopSelf.KEEP)
        await ctx.pulse_downstream(NodeOutput(done=True))


class StopsAtOnce(Node):
    """Ask for a stop, then wait for a file."""

    class Inputs:
        tag: str
        go: str

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.stop_tagged(ctx.inputs.get("tag", str))
        await appears(ctx.inputs.get("go", str))
        await ctx.pulse_downstream(NodeOutput(done=True))


class AppearsThenTags(Node):
    """Wait for a file, then tag, swallowing whatever comes of it, and emit."""

    class Inputs:
        go: str

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        await appears(ctx.inputs.get("go", str))
        try:
            await ctx.tag_execution(["late"])
        except BaseException:
            note(ctx.inputs.get("go", str), "refused")
        await ctx.pulse_downstream(NodeOutput(done=True))


class Waits(Node):
    """Wait for a file, then emit; write down the beginning, and by the clock of all processes when a stop arrives."""

    class Inputs:
        go: str = "/nowhere"
        begun: str = ""
        told: str = ""

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        if begun := ctx.inputs.get("begun", str):
            note(begun, ctx.execution_id)
        try:
            await appears(ctx.inputs.get("go", str))
        except asyncio.CancelledError:
            if told := ctx.inputs.get("told", str):
                note(told, f"{ctx.execution_id} {time.monotonic()}")
            raise
        await ctx.pulse_downstream(NodeOutput(done=True))


class Traces(Node):
    """Leave a line in a file, at once."""

    class Inputs:
        file: str

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        note(ctx.inputs.get("file", str), ctx.execution_id)
        await ctx.pulse_downstream(NodeOutput(done=True))


class BusyLoop(Node):
    """Hold the event loop, so that no stop can arrive, and emit then."""

    class Inputs:
        file: str
        seconds: float

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        file = ctx.inputs.get("file", str)
        note(file, "begun")
        time.sleep(ctx.inputs.get("seconds", float))  # noqa: ASYNC251 - what this is about
        note(file, "over")
        await ctx.pulse_downstream(NodeOutput(done=True))


class BlocksNowAndThen(Node):
    """Leave a line, then hold the event loop for a while, several times, with a breath in between."""

    class Inputs:
        file: str
        seconds: float
        times: int

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        note(ctx.inputs.get("file", str), "body")
        for _ in range(ctx.inputs.get("times", int)):
            time.sleep(ctx.inputs.get("seconds", float))  # noqa: ASYNC251 - what this is about
            await asyncio.sleep(0.3)
        await ctx.pulse_downstream(NodeOutput(done=True))


class CatchesExceptions(Node):
    """Catch every Exception around a wait, and go on."""

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.sleep(60)
        except Exception:
            await ctx.pulse_downstream(NodeOutput(done=False))
        await ctx.pulse_downstream(NodeOutput(done=True))


class AwaitsInFinally(Node):
    """Clean up with awaits, shielded by nothing."""

    class Inputs:
        file: str

    class Outputs:
        done: bool

    async def run(self, ctx: ExecutionContext) -> None:
        file = ctx.inputs.get("file", str)
        try:
            await asyncio.sleep(60)
        finally:
            note(file, "begun")
            await asyncio.sleep(0.05)
            note(file, "cleaned up")


class Pass(Node):
    """Hand on any value, null too."""

    class Inputs:
        value: bool | None

    class Outputs:
        value: bool | None

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.pulse_downstream(NodeOutput().set("value", ctx.inputs.get("value")))


class NeverEmits(Node):
    """End without a word, so that its output closes."""

    class Outputs:
        value: bool | None

    async def run(self, ctx: ExecutionContext) -> None:
        """Nothing."""
