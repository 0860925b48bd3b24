"""Bodies that wait."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from weft import ExecutionContext, Form, Node, NodeOutput, Retry, Timer, Webhook, first_of, forms


def note(file: str, line: str) -> None:
    with Path(file).open("a") as out:
        out.write(line + "\n")


class Naps(Node):
    """Sleep on a stored timer, then hand on the value."""

    class Inputs:
        value: int = 0
        seconds: float = 0.2

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        await ctx.await_signal(Timer(after=timedelta(seconds=ctx.inputs.get("seconds", float))))
        await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", int)))


class AsksAge(Node):
    """Ask until the answer is an age."""

    class Inputs:
        file: str

    class Outputs:
        age: int

    async def run(self, ctx: ExecutionContext) -> None:
        while True:
            answer = await ctx.await_signal(Form("How old are you?", [forms.text_input("age")]))
            text = answer["age"]
            await ctx.run("noted", lambda text=text: note(ctx.inputs.get("file", str), text))
            if text.isdigit():
                await ctx.pulse_downstream(NodeOutput(age=int(text)))
                return


class FormOrTimer(Node):
    """A form, or a minute, whichever comes first."""

    class Inputs:
        seconds: float = 60

    class Outputs:
        which: int

    async def run(self, ctx: ExecutionContext) -> None:
        timer = Timer(after=timedelta(seconds=ctx.inputs.get("seconds", float)))
        first = await ctx.await_signal(first_of(Form("Now?", [forms.text_input("why")]), timer))
        await ctx.pulse_downstream(NodeOutput(which=first.which))


class Hears(Node):
    """Wait for a request from outside."""

    class Outputs:
        body: dict[str, Any]

    async def run(self, ctx: ExecutionContext) -> None:
        request = await ctx.await_signal(Webhook())
        await ctx.pulse_downstream(NodeOutput(body=request.body))


class Tries(Node):
    """Fail until the file has as many lines as asked for."""

    retry = Retry(attempts=3, first=timedelta(milliseconds=100))

    class Inputs:
        file: str
        good_at: int = 3

    class Outputs:
        tries: int

    async def run(self, ctx: ExecutionContext) -> None:
        file = ctx.inputs.get("file", str)
        note(file, "try")
        tries = len(Path(file).read_text().splitlines())
        if tries < ctx.inputs.get("good_at", int):
            raise ValueError(f"try {tries} failed")
        await ctx.pulse_downstream(NodeOutput(tries=tries))


class StartsChild(Node):
    """Start a run below this one and wait for its end."""

    class Inputs:
        program: str
        wait: bool = True

    class Outputs:
        status: str

    async def run(self, ctx: ExecutionContext) -> None:
        child = await ctx.start_run(ctx.inputs.get("program", str), {})
        if ctx.inputs.get("wait", bool):
            end = await ctx.await_signal(child)
            await ctx.pulse_downstream(NodeOutput(status=end["status"]))


class FailsForLong(Node):
    """Fail, with a long rest before each next try."""

    retry = Retry(attempts=3, first=timedelta(seconds=30))

    class Inputs:
        file: str
        seconds: float = 0

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        note(ctx.inputs.get("file", str), "try")
        try:
            await asyncio.sleep(ctx.inputs.get("seconds", float))
        finally:
            raise ValueError("no luck")


class HangsInRun(Node):
    """Compute a saved outcome, which never comes while the file is not there."""

    class Inputs:
        file: str

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        async def compute() -> int:
            while not Path(ctx.inputs.get("file", str)).exists():
                await asyncio.sleep(0.02)
            return 7

        await ctx.pulse_downstream(NodeOutput(value=await ctx.run("compute", compute)))
