"""Format: a text with placeholders, filled from inputs of the program's own making."""

import json
import re
from typing import Any

from weft import CreatedInputs, ExecutionContext, InputError, Node, NodeOutput, Port

_PARTS = re.compile(r"(?P<open>\{\{\{\{)|(?P<close>\}\}\}\})|\{\{(?P<name>[^{}]*)\}\}|(?P<lone>\{\{(?!\{))")


class Format(Node):
    """Fill the placeholders of a template: `{{name}}` is the input `name`, a text as it is, all else as JSON.

    Every placeholder needs its input and every input its placeholder. `{{{{` and `}}}}` stand for two braces.
    An optional input that has no value leaves its placeholder empty.
    """

    pure = True
    created_inputs = CreatedInputs()

    class Inputs:
        template: str = Port(widget="textarea")

    class Outputs:
        text: str

    async def run(self, ctx: ExecutionContext) -> None:
        values = {**dict.fromkeys(ctx.inputs.absent(), ""), **ctx.inputs.created()}
        await ctx.pulse_downstream(NodeOutput(text=filled(ctx.inputs.get("template", str), values)))


def filled(template: str, values: dict[str, Any]) -> str:
    """The template with its placeholders filled. Raises InputError where it and the values do not match."""
    used: set[str] = set()

    def replace(part: re.Match[str]) -> str:
        if part["open"]:
            return "{{"
        if part["close"]:
            return "}}"
        if part["lone"]:
            line = template.count("\n", 0, part.start()) + 1
            raise InputError(f"`{{{{` in line {line} of the template is never closed", hint=_HINT)
        name = part["name"].strip()
        if name not in values:
            raise InputError(
                f"the template has the placeholder `{part[0]}`, and there is no input of that name; {_listed(values)}",
                hint=_HINT,
            )
        used.add(name)
        value = values[name]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    text = _PARTS.sub(replace, template)
    unused = [name for name in values if name not in used]
    if unused:
        names = ", ".join(f"`{name}`" for name in unused)
        hint = f"write `{{{{{unused[0]}}}}}` where it belongs"
        raise InputError(f"the template has no placeholder for the input {names}", hint=hint)
    return text


_HINT = "two braces that are meant as text are written as four"


def _listed(values: dict[str, Any]) -> str:
    return f"there are {', '.join(f'`{name}`' for name in values)}" if values else "there are none"
