"""Python types to the language's types.

Not here: ports (`spec.py`). Records are not part of the language yet, so a model, dataclass or TypedDict has
no type here.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, NotRequired, Required, TypeVar

from weft.lang.types import (
    AUTO,
    BOOLEAN,
    JSON_DICT,
    MUST_OVERRIDE,
    NULL,
    NUMBER,
    STRING,
    DictOf,
    ListOf,
    MustOverride,
    Type,
    Variable,
    is_variable_name,
    union,
)

_PLAIN: dict[Any, Type] = {
    str: STRING,
    int: NUMBER,
    float: NUMBER,
    bool: BOOLEAN,
    None: NULL,
    types.NoneType: NULL,
    list: ListOf(AUTO),
    dict: JSON_DICT,
    Any: AUTO,
    MustOverride: MUST_OVERRIDE,
}

_INSTEAD = {
    "tuple": "use list[…]",
    "set": "use list[…]",
    "frozenset": "use list[…]",
    "bytes": "use str, with the bytes encoded as text",
    "datetime": "use str, an ISO 8601 text",
    "date": "use str, an ISO 8601 text",
    "timedelta": "use float, a number of seconds",
    "Decimal": "use str or float",
    "UUID": "use str",
    "Path": "use str",
    "object": "use Any",
}


class Unsayable(Exception):
    """The language has no such type. The message says so, `hint` what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Said(NamedTuple):
    """A type of the language, and the options that a `Literal[...]` in it leaves."""

    type: Type
    options: tuple[str, ...] | None = None


def is_record(annotation: Any) -> bool:
    """Whether it is a class with fields: a TypedDict, a dataclass, a NamedTuple or a pydantic model."""
    return isinstance(annotation, type) and (
        typing.is_typeddict(annotation)
        or is_dataclass(annotation)
        or hasattr(annotation, "model_fields")
        or (issubclass(annotation, tuple) and hasattr(annotation, "_fields"))
    )


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of such a class with their annotations, in the order they are written."""
    if hasattr(record, "model_fields"):
        return {name: field.annotation for name, field in record.model_fields.items()}
    hints = typing.get_type_hints(record)
    if is_dataclass(record):
        return {field.name: hints[field.name] for field in fields(record)}
    return hints


def say(annotation: Any) -> Said:
    """The language's type for a Python annotation. Raises Unsayable."""
    origin = typing.get_origin(annotation)
    if origin in (Required, NotRequired):
        return say(typing.get_args(annotation)[0])
    if origin is typing.Annotated:
        return say(annotation.__origin__)
    if origin is Literal:
        return Said(STRING, _options(annotation))
    if origin in (typing.Union, types.UnionType):
        members = [say(member) for member in typing.get_args(annotation)]
        return Said(union(*(member.type for member in members)), _options_of_union(annotation, members))
    if origin is list:
        item = say(typing.get_args(annotation)[0])
        return Said(ListOf(item.type), item.options)
    if origin is dict:
        return Said(_dict_type(annotation))
    return Said(_plain(annotation))


def language_type(annotation: Any) -> Type:
    """As `say`, where no options can be kept: inside a dictionary, on an output, in a template."""
    return say(annotation).type


def _plain(annotation: Any) -> Type:
    try:
        known = _PLAIN.get(annotation)
    except TypeError:
        known = None
    if known is not None:
        return known
    if isinstance(annotation, TypeVar):
        if not is_variable_name(annotation.__name__):
            raise Unsayable(
                f"a type variable is called T, T1, T2, …, not {annotation.__name__}",
                f'write {annotation.__name__} = TypeVar("T")',
            )
        return Variable(annotation.__name__)
    if is_record(annotation):
        raise Unsayable(
            f"{annotation.__name__} is a record, and the language has no records yet",
            "use dict[str, Any], or one port a field",
        )
    name = getattr(annotation, "__name__", None) or str(annotation)
    origin = typing.get_origin(annotation)
    plain_name = getattr(origin, "__name__", name)
    raise Unsayable(f"the language has no type for {_spelled(annotation)}", _INSTEAD.get(plain_name))


def _spelled(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _dict_type(annotation: Any) -> Type:
    key, value = typing.get_args(annotation)
    if key is not str:
        raise Unsayable(f"the keys of a dictionary are text, not {_spelled(key)}", f"use dict[str, {_spelled(value)}]")
    return JSON_DICT if value is Any else DictOf(STRING, language_type(value))


def _options(annotation: Any) -> tuple[str, ...]:
    options = typing.get_args(annotation)
    for option in options:
        if not isinstance(option, str):
            raise Unsayable(f"a Literal lists texts, and {option!r} is none", "use Port(options=[…])")
    return options


def _options_of_union(annotation: Any, members: list[Said]) -> tuple[str, ...] | None:
    """Options survive a union with None and with other options; next to another type they would be no rule."""
    limited = [member.options for member in members if member.options is not None]
    if not limited:
        return None
    others = [member for member in members if member.type != NULL]
    if len(others) > 1 and any(member.options is None or member.type != STRING for member in others):
        raise Unsayable(
            f"options cannot be told apart from the other types in {_spelled(annotation)}",
            "use a Literal alone, or with None",
        )
    return tuple(dict.fromkeys(option for options in limited for option in options))
