"""ExecPython: a few lines of Python as a node.

The code runs in a process of its own (`_pool.py` has them, `_child.py` is what runs in one), so nothing it does
holds up the event loop, and a stop can end it at any moment.
"""

import keyword
from typing import Any

from weft import CreatedInputs, ExecutionContext, InputError, Node, NodeError, NodeOutput, Port

LINES = 1000
"""Printed lines that are kept; a loop that prints must not fill the journal."""


class ExecPython(Node):
    """Run Python code, written like the body of a function: inputs are names, outputs are what it returns.

    `return {"total": a + b}` emits on the output `total`. An output whose key is missing, or whose value is
    None, closes. An optional input that has no value is None. What the code prints goes to the run's log; what
    it raises fails the node. It may import whatever is installed where weft runs.
    """

    label = "Python"
    created_inputs = CreatedInputs()
    created_outputs = True

    class Inputs:
        code: str = Port(widget="code")

    async def run(self, ctx: ExecutionContext) -> None:
        # Here, since it loads asyncio, which whoever only checks a program has no use for.
        from ._pool import pool

        names = dict.fromkeys(ctx.inputs.absent())
        names |= {name: value for name, value in ctx.inputs.in_order() if name != "code"}
        _demand_names(names)
        async with pool().process() as process:
            returned = await process.call(ctx.inputs.get("code", str), names, _Lines(ctx).add)
        await ctx.pulse_downstream(NodeOutput(**_emitted(returned, ctx.declared_outputs())))


def _demand_names(names: dict[str, Any]) -> None:
    for name in names:
        if keyword.iskeyword(name):
            raise InputError(
                f"the input `{name}` cannot be used in the code: `{name}` is a word of Python",
                hint="give the input another name",
            )


def _emitted(returned: Any, declared: tuple[str, ...]) -> dict[str, Any]:
    """The outputs that get a value. Raises NodeError for what the code may not return."""
    if returned is None:
        return {}
    listed = ", ".join(f"`{name}`" for name in declared)
    if not isinstance(returned, dict):
        example = declared[0] if declared else "name"
        raise NodeError(
            f"the code returned {_shown(returned)}, and not an object with a key for each output",
            hint=f'write `return {{"{example}": …}}`',
        )
    for name in returned:
        if name not in declared:
            there = f"the declared outputs are {listed}" if declared else "the node declares no outputs"
            raise NodeError(
                f"the code returned the key `{name}`, which is no output; {there}",
                hint=f"declare it: `ExecPython -> ({name}: String) {{ … }}`, with its type",
            )
    return {name: value for name, value in returned.items() if value is not None}


def _shown(value: Any) -> str:
    text = repr(value)
    return f"`{text}`" if len(text) <= 60 else f"a {type(value).__name__}"


class _Lines:
    """Printed lines on their way to the log."""

    def __init__(self, ctx: ExecutionContext) -> None:
        self._ctx = ctx
        self._count = 0

    async def add(self, level: Any, line: str) -> None:
        self._count += 1
        if self._count <= LINES:
            await self._ctx.log(level, line)
        elif self._count == LINES + 1:
            await self._ctx.log("warning", f"more than {LINES} lines were printed; the rest is not kept")
