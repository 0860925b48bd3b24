"""`weft` as a process, in a small project with an empty database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.weft_process import Weft

PROJECT = """\
[project]
id = "demo-id"
name = "demo"
"""

NODES = '''\
"""Nodes that do what a test needs."""

import asyncio
import random
from pathlib import Path
from typing import Any

from weft import ExecutionContext, Node, NodeError, NodeOutput, node


class Show(Node):
    """Show a value, as Debug does, and count its cost."""

    class Inputs:
        data: Any

    async def run(self, ctx: ExecutionContext) -> None:
        ctx.log("debug", str(ctx.inputs.raw("data")))


class Meter(Node):
    """Report a cost that is known and one that is not, and warn."""

    class Inputs:
        text: str

    async def run(self, ctx: ExecutionContext) -> None:
        ctx.log("warning", "careful")
        ctx.report_cost("known", 0.25)
        ctx.report_cost("nobody-knows", None)


class Hold(Node):
    """Say that it has begun by making a file, and end when another file is there."""

    class Inputs:
        begun: str
        release: str

    class Outputs:
        text: str

    async def run(self, ctx: ExecutionContext) -> None:
        begun = Path(ctx.inputs.get("begun", str))
        begun.write_text(begun.read_text() + "x" if begun.exists() else "x")
        release = Path(ctx.inputs.get("release", str))
        while not release.exists():
            await asyncio.sleep(0.01)
        await ctx.pulse_downstream(NodeOutput(text="released"))


class Linger(Node):
    """End within 20 ms, nobody knows when."""

    async def run(self, ctx: ExecutionContext) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))


@node
async def give(value: str) -> str:
    """A text."""
    return value


@node
async def boom(text: str) -> str:
    """Fail."""
    raise NodeError("it went boom")
'''

HELLO = """\
hello = Give { value: "hello" }
show = Show { data: hello.value }
"""

FAILS = """\
hello = Give { value: "hello" }
bad = Boom { text: hello.value }
after = Show { data: bad.value }
beside = Show { data: hello.value }
"""

HOLDS = """\
hold = Hold { begun: "begun" release: "release" }
show = Show { data: hold.text }
"""


@pytest.fixture
def weft(database_url: str, tmp_path: Path) -> Weft:
    """A project called demo, with the programs `main.weft` (shows hello), `fails.weft` and `holds.weft`."""
    made = Weft(database_url, tmp_path)
    made.write("weft.toml", PROJECT)
    made.write("nodes/steps.py", NODES)
    made.write("main.weft", HELLO)
    made.write("fails.weft", FAILS)
    made.write("holds.weft", HOLDS)
    return made
