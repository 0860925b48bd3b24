"""Switch: sends a run down one of several ways, by a value."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from weft import (
    Condition,
    EntryField,
    EntryKind,
    ExecutionContext,
    Node,
    NodeOutput,
    Port,
    PortsFromConfig,
    PortTemplate,
    Rule,
    same,
)

T = TypeVar("T")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, list):
        return any(same(item, part) for item in value)
    return isinstance(value, str) and isinstance(part, str) and part in value


def _between(value: Any, case: dict[str, Any]) -> bool:
    if not _number(value):
        return False
    if case.get("inclusive") is False:
        return bool(case["min"] < value < case["max"])
    return bool(case["min"] <= value <= case["max"])


_MATCHES: dict[str, Callable[[Any, dict[str, Any]], bool]] = {
    "equals": lambda value, case: same(value, case["value"]),
    "in": lambda value, case: any(same(value, option) for option in case["value"]),
    "contains": lambda value, case: _contains(value, case["value"]),
    "matches": lambda value, case: isinstance(value, str) and re.search(case["value"], value) is not None,
    "gt": lambda value, case: _number(value) and value > case["value"],
    "gte": lambda value, case: _number(value) and value >= case["value"],
    "lt": lambda value, case: _number(value) and value < case["value"],
    "lte": lambda value, case: _number(value) and value <= case["value"],
    "between": _between,
    "otherwise": lambda value, case: True,
}


def _kind(kind: str, *fields: EntryField, catch_all: bool = False) -> EntryKind:
    return EntryKind(
        kind, key_field="port", fields=fields, catch_all=catch_all, adds_outputs=(PortTemplate("{key}", bool),)
    )


_LIMIT = EntryField("value", "number", required=True)


class Switch(Node):
    """Try the cases in the order they are written; the first that matches says `true` on its port.

    All other ports close, and where no case matches, all of them. Each case is an object with a `kind` and
    the name of its `port`: `{ "kind": "equals", "value": "yes", "port": "agreed" }`. The kinds are `equals`,
    `in` (a list of values), `contains` (an item of a list, or a piece of a text), `matches` (a regular
    expression that is found in the text), `gt`, `gte`, `lt`, `lte`, `between` (`min` and `max`, both ends
    included unless `inclusive` is false) and, last, `otherwise`.
    """

    pure = True

    class Inputs:
        value: T
        cases: list[dict[str, Any]] = Port(compiler_read=True)

    ports_from_config = PortsFromConfig(
        "cases",
        match_input="value",
        kinds=(
            _kind("equals", EntryField("value", "value", required=True)),
            _kind("in", EntryField("value", "valueList", required=True, non_empty=True)),
            _kind("contains", EntryField("value", "element", required=True)),
            _kind("matches", EntryField("value", "regex", required=True)),
            _kind("gt", _LIMIT),
            _kind("gte", _LIMIT),
            _kind("lt", _LIMIT),
            _kind("lte", _LIMIT),
            _kind(
                "between",
                EntryField("min", "number", required=True),
                EntryField("max", "number", required=True),
                EntryField("inclusive", type=bool),
            ),
            _kind("otherwise", catch_all=True),
        ),
    )
    validate = (Rule(Condition("config_nonempty", "cases"), "`cases` is empty: a Switch needs a case to choose"),)

    async def run(self, ctx: ExecutionContext) -> None:
        value = ctx.inputs.raw("value")
        for case in ctx.inputs.get("cases", list[dict[str, Any]]):
            if _MATCHES[case["kind"]](value, case):
                await ctx.pulse_downstream(NodeOutput().set(case["port"], True))
                return
