"""The tree that the parser makes: what stands in a file, where, with nothing looked up.

Every part has the `span` it was written at. Comments are kept in `File.comments`, in order. A bad item is left out of
the tree (its error is among the parser's diagnostics); everything else is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from weft.lang.diagnostics import Source, Span


@dataclass(slots=True)
class Name:
    text: str
    span: Span


# --- types ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NamedTypeExpr:
    """A bare name: a primitive, a variable, JsonDict, MustOverride or a declared type. Which one: `resolve`."""

    name: str
    span: Span


@dataclass(slots=True)
class ListTypeExpr:
    item: TypeExpr
    span: Span


@dataclass(slots=True)
class GeneratorTypeExpr:
    item: TypeExpr
    span: Span


@dataclass(slots=True)
class DictTypeExpr:
    key: TypeExpr
    value: TypeExpr
    span: Span


@dataclass(slots=True)
class RecordFieldExpr:
    name: Name
    optional: bool
    type: TypeExpr


@dataclass(slots=True)
class RecordTypeExpr:
    fields: list[RecordFieldExpr]
    span: Span


@dataclass(slots=True)
class UnionTypeExpr:
    members: list[TypeExpr]
    span: Span


TypeExpr = (
    NamedTypeExpr | ListTypeExpr | GeneratorTypeExpr | DictTypeExpr | RecordTypeExpr | UnionTypeExpr
)


# --- values -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scalar:
    """A string, heredoc, number, boolean or null: `value` is the Python value it stands for."""

    value: str | int | float | bool | None
    kind: Literal["string", "heredoc", "number", "boolean", "null"]
    span: Span


@dataclass(slots=True)
class ListValue:
    items: list[Element]
    span: Span


@dataclass(slots=True)
class ObjectValue:
    entries: list[tuple[Scalar, Element]]
    span: Span


@dataclass(slots=True)
class FileMarker:
    """`@file(path, Type)`; `type` is None where none is written (String)."""

    path: str
    type: TypeExpr | None
    span: Span


@dataclass(slots=True)
class AssetMarker:
    path: str
    type: TypeExpr | None
    span: Span


@dataclass(slots=True)
class InstanceFilled:
    span: Span


@dataclass(slots=True)
class Wire:
    """`node.port` and the keys read after it; `node.text` may be `self`."""

    node: Name
    port: Name
    keys: list[Name]
    span: Span


@dataclass(slots=True)
class Inline:
    """A node written in the place of a value, and the output that is taken from it."""

    type: Name
    signature: Signature | None
    body: Body | None
    port: Name
    span: Span


Element = Scalar | ListValue | ObjectValue | FileMarker | AssetMarker
"""What may stand inside a list or object."""

Value = Element | InstanceFilled | Wire | Inline


# --- headers and bodies -----------------------------------------------------------------------------------


@dataclass(slots=True)
class PortDecl:
    """`type` is None where none is written (MustOverride)."""

    name: Name
    optional: bool
    type: TypeExpr | None
    span: Span


@dataclass(slots=True)
class OneOf:
    ports: list[Name]
    span: Span


@dataclass(slots=True)
class PerInstance:
    span: Span


@dataclass(slots=True)
class Signature:
    inputs: list[PortDecl]
    outputs: list[PortDecl]
    one_of: list[OneOf]
    span: Span


@dataclass(slots=True)
class Field:
    """`name: value` or `name?: value` in a body; gates, `_label`, `_tags` and loop settings are fields too."""

    name: Name
    optional: bool
    value: Value
    span: Span


@dataclass(slots=True)
class WireLine:
    """`node.port = value`."""

    node: Name
    port: Name
    value: Value
    span: Span


@dataclass(slots=True)
class Body:
    """The braces of a node, in written order."""

    entries: list[Field | WireLine | OneOf | PerInstance]
    span: Span


# --- items ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class NodeDecl:
    id: Name
    type: Name
    signature: Signature | None
    body: Body | None
    span: Span


@dataclass(slots=True)
class ContainerDecl:
    """A group or a loop; `id` is None for the anonymous group of an included file."""

    kind: Literal["group", "loop"]
    id: Name | None
    signature: Signature | None
    description: str | None
    fields: list[Field]
    items: list[Item]
    span: Span


@dataclass(slots=True)
class IncludeDecl:
    id: Name
    path: str
    path_span: Span
    span: Span


@dataclass(slots=True)
class TypeDecl:
    name: Name
    type: TypeExpr
    span: Span


Item = NodeDecl | ContainerDecl | IncludeDecl | WireLine | TypeDecl


@dataclass(slots=True)
class Comment:
    """From `#` to the end of its line, the end left out."""

    text: str
    span: Span


@dataclass(slots=True)
class File:
    """`root` is the anonymous group of an included file; an entry file has `items` alone."""

    source: Source
    items: list[Item]
    comments: list[Comment] = field(default_factory=list)
    root: ContainerDecl | None = None


def plain(value: Element) -> Any:
    """The Python value of a literal that holds no marker (a marker inside it is an error of the caller's)."""
    match value:
        case Scalar():
            return value.value
        case ListValue():
            return [plain(item) for item in value.items]
        case ObjectValue():
            return {str(key.value): plain(item) for key, item in value.entries}
        case _:
            raise TypeError("a literal with a marker in it has no plain value")
