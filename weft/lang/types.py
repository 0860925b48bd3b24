"""The type algebra: what types there are, how they are spelled, which fit which.

Pure data and functions. Not here: values (`values.py`), and which type a port ends up with (`resolve.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Type

    def __str__(self) -> str:
        return f"List[{self.item}]"


@dataclass(frozen=True, slots=True)
class DictOf:
    key: Type
    value: Type

    def __str__(self) -> str:
        return f"Dict[{self.key}, {self.value}]"


@dataclass(frozen=True, slots=True)
class Union:
    """Two or more members, flat, without duplicates and (unless all are) without Empty. Made by `union`."""

    members: tuple[Type, ...]

    def __str__(self) -> str:
        return " | ".join(str(member) for member in self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Union) and frozenset(self.members) == frozenset(other.members)

    def __hash__(self) -> int:
        return hash(frozenset(self.members))


@dataclass(frozen=True, slots=True)
class Variable:
    """`T`, `T1`, … as written; `T_Auto` in metadata; a fresh one has a name that no source can spell."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class JsonDict:
    def __str__(self) -> str:
        return "JsonDict"


@dataclass(frozen=True, slots=True)
class MustOverride:
    def __str__(self) -> str:
        return "MustOverride"


Type = Primitive | ListOf | DictOf | Union | Variable | JsonDict | MustOverride
"""Records, named types, streams, file kinds and handles join this union when they are built."""

STRING: Final = Primitive("String")
NUMBER: Final = Primitive("Number")
BOOLEAN: Final = Primitive("Boolean")
NULL: Final = Primitive("Null")
EMPTY: Final = Primitive("Empty")
JSON_DICT: Final = JsonDict()
MUST_OVERRIDE: Final = MustOverride()
AUTO: Final = Variable("T_Auto")

PRIMITIVES: Final = {t.name: t for t in (STRING, NUMBER, BOOLEAN, NULL, EMPTY)}

_VARIABLE = re.compile(r"T[0-9]*")


def is_variable_name(name: str) -> bool:
    return _VARIABLE.fullmatch(name) is not None


def union(*types: Type) -> Type:
    """The union of these: flat, each member once, Empty only where nothing else is; one member is itself."""
    members: list[Type] = []
    for each in types:
        for member in each.members if isinstance(each, Union) else (each,):
            if member not in members:
                members.append(member)
    if len(members) > 1:
        members = [member for member in members if member != EMPTY]
    return members[0] if len(members) == 1 else Union(tuple(members))
