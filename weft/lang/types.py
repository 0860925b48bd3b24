"""The type algebra: what types there are, how they are spelled, which fit which.

Pure data and functions. Not here: values (`values.py`), and which type a port ends up with (`resolve.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MAX_NESTING: Final = 200
"""How deep types and values may nest."""


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
    """`T`, `T1`, … as written; `T_Auto` in metadata, where it stands for a fresh one.

    A fresh one is called `T_Auto:` and whose it is, which no source can spell, and is shown as `T_Auto`.
    """

    name: str

    def __str__(self) -> str:
        return self.name.partition(":")[0]


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


def walk(type_: Type) -> Iterator[Type]:
    """The type and every type in it, outermost first."""
    yield type_
    match type_:
        case ListOf(item):
            yield from walk(item)
        case DictOf(key, value):
            yield from walk(key)
            yield from walk(value)
        case Union(members):
            for member in members:
                yield from walk(member)


def substitute(type_: Type, replace: Callable[[Variable], Type]) -> Type:
    """The type with each variable replaced; unions are flattened again."""
    match type_:
        case Variable():
            return replace(type_)
        case ListOf(item):
            return ListOf(substitute(item, replace))
        case DictOf(key, value):
            return DictOf(substitute(key, replace), substitute(value, replace))
        case Union(members):
            return union(*(substitute(member, replace) for member in members))
        case _:
            return type_


@lru_cache(maxsize=4096)
def is_open(type_: Type) -> bool:
    """Whether a variable or MustOverride is left anywhere in it."""
    return any(isinstance(part, Variable | MustOverride) for part in walk(type_))


def admits_null(type_: Type) -> bool:
    """Whether null is a value of this type. An open type takes anything."""
    return assignable(NULL, type_)


@lru_cache(maxsize=4096)
def assignable(source: Type, target: Type) -> bool:
    """Whether every value of `source` is a value of `target`. The first rule that applies decides."""
    if isinstance(source, Variable | MustOverride) or isinstance(target, Variable | MustOverride):
        return True
    if source == EMPTY:
        return True
    match source, target:
        case Primitive(), Primitive():
            return source == target
        case ListOf(a), ListOf(b):
            return assignable(a, b)
        case DictOf(k, v), DictOf(key, value):
            return assignable(k, key) and assignable(v, value)
        case JsonDict(), JsonDict():
            return True
        case JsonDict(), DictOf(key, _):
            return key == STRING
        case DictOf(key, _), JsonDict():
            return key == STRING
        case Union(members), Union(wanted):
            return all(any(assignable(each, member) for member in wanted) for each in members)
        case _, Union(wanted):
            return any(assignable(source, member) for member in wanted)
        case Union(members), _:
            return all(assignable(each, target) for each in members)
        case _:
            return False


# --- reading a type's text --------------------------------------------------------------------------------

_BLANKS = " \t\r\n"
_TOKEN = re.compile(r"[ \t\r\n]*(?:([A-Za-z_][A-Za-z0-9_]*)|([][(),|]))")


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type that a text such as `Dict[String, Number | Null]` spells; `str` gives the canonical text back.

    Raises ValueError, with a message for a person, where the text is no type or nests too deep.
    """
    return _TypeReader(text).whole()


class _TypeReader:
    """Recursive descent over the tokens of one type; `MAX_NESTING` keeps it off the interpreter's limit."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.at = 0
        offset, end = 0, len(text.rstrip(_BLANKS))
        while offset < end:
            found = _TOKEN.match(text, offset)
            if found is None:
                raise ValueError(f"`{text}` is not a type: `{text[offset:].strip(_BLANKS)[0]}` cannot stand there")
            self.tokens.append(found[1] or found[2])
            offset = found.end()

    def whole(self) -> Type:
        result = self.alternatives(0)
        if self.at < len(self.tokens):
            raise ValueError(f"`{self.text}` is not a type: nothing can follow `{result}` at `{self.peek()}`")
        return result

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            found = f"`{self.peek()}`" if self.peek() else "the end"
            raise ValueError(f"`{self.text}` is not a type: expected `{wanted}`, found {found}")
        self.at += 1

    def alternatives(self, depth: int) -> Type:
        if depth > MAX_NESTING:
            raise ValueError(f"a type nests at most {MAX_NESTING} levels deep")
        members = [self.one(depth)]
        while self.peek() == "|":
            self.at += 1
            members.append(self.one(depth))
        return union(*members)

    def one(self, depth: int) -> Type:
        name = self.peek()
        if name == "(":
            self.at += 1
            inner = self.alternatives(depth + 1)
            self.take(")")
            return inner
        if not name or not (name[0].isalpha() or name[0] == "_"):
            raise ValueError(f"`{self.text}` is not a type: a type's name is missing")
        self.at += 1
        if name == "List":
            self.take("[")
            item = self.alternatives(depth + 1)
            self.take("]")
            return ListOf(item)
        if name == "Dict":
            self.take("[")
            key = self.alternatives(depth + 1)
            self.take(",")
            value = self.alternatives(depth + 1)
            self.take("]")
            return DictOf(key, value)
        found = simple_type(name)
        if found is None:
            raise ValueError(f"there is no type `{name}`")
        return found


def simple_type(name: str) -> Type | None:
    """The type that a bare name stands for, or None: a primitive, JsonDict, MustOverride or a variable."""
    if name in PRIMITIVES:
        return PRIMITIVES[name]
    if name == "JsonDict":
        return JSON_DICT
    if name == "MustOverride":
        return MUST_OVERRIDE
    if is_variable_name(name) or name == AUTO.name:
        return Variable(name)
    return None
