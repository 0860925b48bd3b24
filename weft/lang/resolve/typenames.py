"""From a type as written to the type it means."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from weft.lang.diagnostics import Span
from weft.lang.resolve.model import UNKNOWN, Report
from weft.lang.syntax import (
    DictTypeExpr,
    GeneratorTypeExpr,
    ListTypeExpr,
    NamedTypeExpr,
    RecordTypeExpr,
    TypeExpr,
    UnionTypeExpr,
)
from weft.lang.types import AUTO, PRIMITIVES, DictOf, ListOf, Type, is_variable_name, simple_type, union

NOT_YET: Final = {
    "Image": "file types",
    "Video": "file types",
    "Audio": "file types",
    "Blob": "file types",
    "Media": "file types",
    "File": "file types",
    "Bus": "buses",
    "Access": "access handles",
}
"""Names of types that the language has and this version does not: what such types are called."""

SPELLED: Final = (*PRIMITIVES, "List", "Dict", "JsonDict", "MustOverride", "Generator", *NOT_YET)


class TypeNames:
    """Reads written types. `declared` are the names that the file itself declares, supported or not."""

    def __init__(self, report: Report, declared: Set[str]) -> None:
        self._report = report
        self._declared = declared

    def read(self, expr: TypeExpr) -> Type:
        """The type meant, or UNKNOWN where a part of it cannot be: then one diagnostic says why."""
        try:
            return self._read(expr)
        except _Unreadable as problem:
            if problem.what is not None:
                self._report.not_yet(problem.span, problem.what)
            elif problem.name not in self._declared:
                self._unknown(problem.name, problem.span)
            return UNKNOWN

    def check(self, expr: TypeExpr) -> None:
        """Report the names in a type that nothing declares, whether or not the type is supported."""
        rest: list[TypeExpr] = [expr]
        while rest:
            match rest.pop():
                case NamedTypeExpr(name, span):
                    if name not in SPELLED and name not in self._declared and not is_variable_name(name):
                        self._unknown(name, span)
                case ListTypeExpr(item) | GeneratorTypeExpr(item):
                    rest.append(item)
                case DictTypeExpr(key, value):
                    rest += (value, key)
                case UnionTypeExpr(members):
                    rest += reversed(members)
                case RecordTypeExpr(fields):
                    rest += (field.type for field in reversed(fields))

    def _read(self, expr: TypeExpr) -> Type:
        match expr:
            case NamedTypeExpr(name, span):
                found = simple_type(name)
                if found is None or found == AUTO:
                    what = NOT_YET.get(name)
                    raise _Unreadable(span, name, None if what is None else f"{what} (`{name}`)")
                return found
            case ListTypeExpr(item):
                return ListOf(self._read(item))
            case DictTypeExpr(key, value):
                return DictOf(self._read(key), self._read(value))
            case UnionTypeExpr(members):
                read = []
                for member in members:
                    read.append(self._read(member))
                return union(*read)
            case RecordTypeExpr(span=span):
                raise _Unreadable(span, "", "record types")
            case GeneratorTypeExpr(span=span):
                raise _Unreadable(span, "", "streams (`Generator`)")

    def _unknown(self, name: str, span: Span) -> None:
        hint = self._report.did_you_mean(name, (*SPELLED, *self._declared))
        self._report.error(span, "parse", f"there is no type `{name}`", hint=hint)


class _Unreadable(Exception):
    """A part of a type that cannot be read: `what` is not supported yet, or (None) the name is not known."""

    def __init__(self, span: Span, name: str, what: str | None) -> None:
        super().__init__(name)
        self.span = span
        self.name = name
        self.what = what
