"""What can be stored exactly: which values the database and JSON hand back as they were given.

Not here: types. A value may fit its type and still not be storable.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from weft.lang.types import MAX_NESTING

SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**63 - 1

_LONG: Final = 16
"""From how many items on it pays to look at a list as a whole first."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def at_key(path: str, key: str) -> str:
    """The path to a key of the object at `path`."""
    if not _IDENTIFIER.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


class _Unstorable(Exception):
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.steps: list[str | int] = []


def unstorable(value: Any) -> str | None:
    """None where the value can be stored exactly; else which part cannot, and why."""
    try:
        _demand_storable(value, 0)
    except _Unstorable as problem:
        path = ""
        for step in reversed(problem.steps):
            path = f"{path}[{step}]" if isinstance(step, int) else at_key(path, step)
        return f"`{path}` {problem.what}" if path and len(path) <= 200 else f"it {problem.what}"
    return None


def _demand_storable(value: Any, depth: int) -> None:
    if value is None or value is True or value is False:
        return
    if isinstance(value, str):
        if "\0" in value:
            raise _Unstorable("holds the character U+0000, which cannot be stored")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _Unstorable("holds half of a surrogate pair, which is no text") from None
    elif isinstance(value, int):
        if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            raise _Unstorable("is an integer beyond signed 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            raise _Unstorable(f"is {name}, which is no JSON value")
    elif isinstance(value, list):
        _demand_shallow(depth)
        if len(value) > _LONG and _all_storable(value):
            return
        at = 0
        try:
            for at, each in enumerate(value):  # noqa: B007 - the handler says where
                _demand_storable(each, depth + 1)
        except _Unstorable as problem:
            problem.steps.append(at)
            raise
    elif isinstance(value, dict):
        _demand_shallow(depth)
        key: Any = ""
        try:
            for key, each in value.items():
                if not isinstance(key, str):
                    raise _Unstorable(f"has a Python {type(key).__name__} as a key; only Strings can be keys")
                _demand_storable(key, depth)
                _demand_storable(each, depth + 1)
        except _Unstorable as problem:
            if isinstance(key, str):
                problem.steps.append(key)
            raise
    elif isinstance(value, tuple):
        raise _Unstorable("is a Python tuple, which is no JSON value; make it a list")
    else:
        raise _Unstorable(f"is a Python {type(value).__name__}, which is no JSON value")


def _all_storable(values: list[Any]) -> bool:
    """Whether a list of one kind of scalar can be stored, found out without looking at each item in Python.

    False means no more than that each must be looked at.
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(min(values) >= SMALLEST_INTEGER and max(values) <= LARGEST_INTEGER)
    if kinds == {float}:
        return all(map(math.isfinite, values))
    if kinds == {str}:
        text = "".join(values)
        return text.isascii() and "\0" not in text
    return kinds == {bool}


def _demand_shallow(depth: int) -> None:
    if depth >= MAX_NESTING:
        raise _Unstorable(f"nests deeper than {MAX_NESTING} levels")
