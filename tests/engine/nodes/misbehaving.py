"""Bodies that do what bodies should not, to see that the run survives it."""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

from weft import ExecutionContext, Node, NodeOutput


class SwallowsCancel(Node):
    """Shield itself from the stop, then hand on a value all the same."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await ctx.pulse_downstream(NodeOutput(value=1))


class BreaksInCleanUp(Node):
    """Turn the stop into an error."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as stop:
            raise RuntimeError("cleanup") from stop


class WritesMarker(Node):
    """Write a line when it is over, however that came."""

    class Inputs:
        file: str

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            with Path(ctx.inputs.get("file", str)).open("a") as file:
                file.write("finally\n")


class NeverLeaves(Node):
    """Ignore every stop."""

    class Inputs:
        seconds: float = 60

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        until = time.monotonic() + ctx.inputs.get("seconds", float)
        while time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)


class InThread(Node):
    """Count in a thread that looks at no flag, then hand on how far it came."""

    class Inputs:
        file: str
        seconds: float = 30

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        file = Path(ctx.inputs.get("file", str))
        until = time.monotonic() + ctx.inputs.get("seconds", float)

        def count(_flag: object) -> int:
            at = 0
            while time.monotonic() < until:
                at += 1
                file.write_text(str(at))
                time.sleep(0.02)
            return at

        await ctx.pulse_downstream(NodeOutput(value=await ctx.thread(count)))


class StartsProcesses(Node):
    """Start a shell with a child of its own and wait for it."""

    class Inputs:
        file: str

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        file = ctx.inputs.get("file", str)
        shell = await ctx.subprocess("sh", "-c", f'sleep 999 & echo "$$ $!" > {file}; wait')
        await shell.wait()


class TimesOutInside(Node):
    """Use a time-out of its own around something slow, and go on."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(60)
        except TimeoutError:
            await ctx.pulse_downstream(NodeOutput(value=7))


class CancelsItself(Node):
    """Raise a cancellation that nobody asked for."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        raise asyncio.CancelledError


class Uncancels(Node):
    """Take the cancellation back and try to go on."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
        await ctx.pulse_downstream(NodeOutput(value=1))


class Exits(Node):
    """Call sys.exit."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        sys.exit(3)


class KillsItsProcess(Node):
    """End the process, as a crash of a library would."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        os._exit(9)


class Fails(Node):
    """Fail."""

    class Inputs:
        message: str = "broken"

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        raise ValueError(ctx.inputs.get("message", str))


class Emits(Node):
    """Emit whatever Python value the expression gives, on a port of any type."""

    class Inputs:
        expression: str
        port: str = "value"
        twice: bool = False

    class Outputs:
        value: int
        other: str

    async def run(self, ctx: ExecutionContext) -> None:
        value = eval(ctx.inputs.get("expression", str))
        output = NodeOutput().set(ctx.inputs.get("port", str), value)
        await ctx.pulse_downstream(output)
        if ctx.inputs.get("twice", bool):
            await ctx.pulse_downstream(output)


class LogsAtTheEnd(Node):
    """Log from `finally`, after the stop."""

    class Outputs:
        value: int

    async def run(self, ctx: ExecutionContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ctx.log("info", "cleaning up")
