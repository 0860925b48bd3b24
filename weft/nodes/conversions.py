"""What a body may want to know of the language itself: conversion to a type, and a tag made of any text.

Thin: the rules are `lang/values.py` and `rules/tags.py`. Errors come out as an author's InputError.
"""

from __future__ import annotations

from typing import Any

from weft.errors import InputError, InvalidTag
from weft.lang.types import parse_type
from weft.lang.values import CastError
from weft.lang.values import convert as convert_value
from weft.rules import tags


def convert(value: Any, type_text: str) -> Any:
    """The value as one of a type such as `List[Number]`, as the Cast node makes it.

    Raises InputError, naming the path inside the value.
    """
    try:
        return convert_value(value, parse_type(type_text))
    except CastError as error:
        raise InputError(str(error)) from None


def normalise_tag(text: str) -> str:
    """The tag of any text: itself where it is legal, else a legible part and a hash. InputError if empty."""
    try:
        return tags.normalise(text)
    except InvalidTag as error:
        raise InputError(error.message, hint=error.hint) from None
