"""Trees told apart from the places they were written at."""

from __future__ import annotations

import dataclasses
from typing import Any

from weft.lang.diagnostics import Diagnostic, Source
from weft.lang.parser import parse
from weft.lang.syntax import Comment, File

ARRANGEMENT = ("span", "path_span", "source", "comments", "description")
"""What a layout may change: a comment that comes first describes a group."""


def tree(text: str, *, included: bool = False) -> File:
    """The tree of a text without mistakes."""
    file, errors = parse(Source("x.weft", text), included=included)
    assert not errors, "\n".join(error.render() for error in errors)
    return file


def errors(text: str, *, included: bool = False) -> list[Diagnostic]:
    return parse(Source("x.weft", text), included=included)[1]


def only_error(text: str, *, included: bool = False) -> Diagnostic:
    found = errors(text, included=included)
    assert len(found) == 1, "\n".join(error.render() for error in found)
    return found[0]


def shape(part: Any) -> Any:
    """A part of a tree as nested tuples, without places, comments and the text."""
    if dataclasses.is_dataclass(part):
        fields = (field.name for field in dataclasses.fields(part) if field.name not in ARRANGEMENT)
        return (type(part).__name__, *((name, shape(getattr(part, name))) for name in fields))
    if isinstance(part, list | tuple):
        return tuple(shape(each) for each in part)
    return (type(part).__name__, part)


def spans(part: Any, text: str) -> list[tuple[str, str]]:
    """Every part that has a place, with the text there."""
    found: list[tuple[str, str]] = []
    rest = [part]
    while rest:
        each = rest.pop()
        if isinstance(each, list | tuple):
            rest += each
        elif dataclasses.is_dataclass(each) and not isinstance(each, Source | Comment):
            if hasattr(each, "span"):
                found.append((type(each).__name__, text[each.span.start : each.span.end]))
            rest += (getattr(each, field.name) for field in dataclasses.fields(each) if field.name != "source")
    return found
