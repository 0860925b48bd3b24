"""The type algebra: what types there are, how they are spelled, which fit which.

Pure data and functions. Not here: values (`values.py`), and which type a port ends up with (`resolve/`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

MAX_NESTING: Final = 200
"""How deep types and values may nest."""


class _Spelled:
    """What all types share. A type knows its `text`, and an `identity` that is the same for equal types alone.

    Both are made once, from those of its parts: however deep a type nests, to print, hash or compare it takes
    no recursion.
    """

    __slots__ = ()
    text: str
    identity: str

    def _spell(self, text: str, identity: str) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "identity", identity)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.text}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Spelled) and self.identity == other.identity)

    def __hash__(self) -> int:
        return hash(self.identity)


def _made() -> str:
    """A field that is made from the others."""
    made: str = field(init=False, repr=False)
    return made


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Primitive(_Spelled):
    name: str
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell(self.name, self.name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListOf(_Spelled):
    item: Type
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell(f"List[{self.item.text}]", f"List[{self.item.identity}]")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DictOf(_Spelled):
    key: Type
    value: Type
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell(f"Dict[{self.key.text}, {self.value.text}]", f"Dict[{self.key.identity}, {self.value.identity}]")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Union(_Spelled):
    """Two or more members, flat, without duplicates and (unless all are) without Empty. Made by `union`.

    Unions of the same members are equal in whatever order these are written.
    """

    members: tuple[Type, ...]
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        text = " | ".join(member.text for member in self.members)
        self._spell(text, f"({'|'.join(sorted(member.identity for member in self.members))})")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variable(_Spelled):
    """`T`, `T1`, … as written; `T_Auto` in metadata, where it stands for a fresh one.

    A fresh one is called `T_Auto:` and whose it is, which no source can spell, and is shown as `T_Auto`.
    """

    name: str
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell(self.name.partition(":")[0], f"${self.name}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JsonDict(_Spelled):
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell("JsonDict", "JsonDict")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MustOverride(_Spelled):
    text: str = _made()
    identity: str = _made()

    def __post_init__(self) -> None:
        self._spell("MustOverride", "MustOverride")


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
    members: dict[Type, None] = {}
    for each in types:
        if isinstance(each, Union):
            members.update(dict.fromkeys(each.members))
        else:
            members[each] = None
    if len(members) > 1:
        members.pop(EMPTY, None)
    return Union(tuple(members)) if len(members) > 1 else next(iter(members))


# What follows uses one frame of the stack for each level of a type, or none: both a list and a union are levels.


def walk(type_: Type) -> Iterator[Type]:
    """The type and every type in it, outermost first."""
    rest = [type_]
    while rest:
        part = rest.pop()
        yield part
        if isinstance(part, ListOf):
            rest.append(part.item)
        elif isinstance(part, DictOf):
            rest += (part.value, part.key)
        elif isinstance(part, Union):
            rest += reversed(part.members)


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
            replaced = []
            for member in members:
                replaced.append(substitute(member, replace))
            return union(*replaced)
        case _:
            return type_


@lru_cache(maxsize=4096)
def is_open(type_: Type) -> bool:
    """Whether a variable or MustOverride is left anywhere in it."""
    return any(isinstance(part, Variable | MustOverride) for part in walk(type_))


def admits_null(type_: Type) -> bool:
    """Whether null is a value of this type. An open type takes anything."""
    return assignable(NULL, type_)


Pair = tuple["Type", "Type"]
Needs = tuple[Callable[[Iterable[bool]], bool], list[Pair]]
"""A question about two types that others decide: `all` or `any` of these."""


def decide(source: Type, target: Type, rule: Callable[[Type, Type], bool | Needs]) -> bool:
    """What a rule says of two types, where it may ask the same of their parts. Without recursion."""
    known: dict[Pair, bool] = {}
    asked: list[Pair] = [(source, target)]
    while asked:
        answer = rule(*asked[-1])
        if not isinstance(answer, bool):
            combine, parts = answer
            unknown = [pair for pair in parts if pair not in known]
            if unknown:
                asked += unknown
                continue
            answer = combine(known[pair] for pair in parts)
        known[asked.pop()] = answer
    return known[source, target]


@lru_cache(maxsize=4096)
def assignable(source: Type, target: Type) -> bool:
    """Whether every value of `source` is a value of `target`."""
    return decide(source, target, _assignable)


def _assignable(source: Type, target: Type) -> bool | Needs:
    if source in (target, EMPTY):
        return True
    match source, target:
        case (Variable() | MustOverride(), _) | (_, Variable() | MustOverride()):
            return True
        case ListOf(a), ListOf(b):
            return all, [(a, b)]
        case DictOf(k, v), DictOf(key, value):
            return all, [(k, key), (v, value)]
        case (JsonDict(), DictOf(key, _)) | (DictOf(key, _), JsonDict()):
            return key == STRING
        case Union(members), _:
            return all, [(member, target) for member in members]
        case _, Union(members):
            return any, [(source, member) for member in members]
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
