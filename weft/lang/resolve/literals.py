"""Written values: what they stand for, with files read, and how they are cast to the type of their port."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from weft.lang.resolve.model import UNKNOWN, Model, Report, Written, holds_unknown
from weft.lang.resolve.typenames import TypeNames
from weft.lang.syntax import AssetMarker, Element, FileMarker, ListValue, ObjectValue, Scalar
from weft.lang.types import STRING, Type
from weft.lang.values import CastError, cast_literal, infer, unstorable


class Files(Protocol):
    """Where `@file` reads from."""

    def read(self, path: str) -> str:
        """The text of a file, named from the project's root.

        Raises OSError, UnicodeDecodeError, or ValueError for a path outside the project.
        """
        ...


class Literals:
    """Evaluates the written values of one file."""

    def __init__(self, report: Report, names: TypeNames, files: Files) -> None:
        self._report = report
        self._names = names
        self._files = files

    def written(self, element: Element) -> Written:
        """The value that an element stands for. What cannot be had is reported and leaves it `broken`."""
        if isinstance(element, Scalar):
            written = Written(element, element.value, element.span)
            if not isinstance(element.value, bool | None):
                self._demand_storable(written)
            return written
        written = Written(element, None, element.span)
        try:
            written.value = self._value(element, written)
        except _Broken:
            written.broken = True
            written.type = UNKNOWN
            return written
        if isinstance(element, FileMarker):
            written.type = self._declared(element)
        self._demand_storable(written)
        return written

    def _demand_storable(self, written: Written) -> None:
        reason = unstorable(written.value)
        if reason is not None:
            self._report.error(written.span, "config-type-mismatch", f"this value cannot be stored: {reason}")
            written.broken = True

    def _value(self, element: Element, written: Written) -> Any:
        if isinstance(element, Scalar):
            return element.value
        if isinstance(element, ListValue):
            items = []
            for item in element.items:
                items.append(self._value(item, written))
            return items
        if isinstance(element, ObjectValue):
            entries = {}
            for key, item in element.entries:
                entries[str(key.value)] = self._value(item, written)
            return entries
        written.marker = True
        if isinstance(element, AssetMarker):
            self._report.not_yet(element.span, "assets (`@asset`)")
            raise _Broken
        return self._read_file(element)

    def _declared(self, marker: FileMarker) -> Type:
        return STRING if marker.type is None else self._names.read(marker.type)

    def _read_file(self, marker: FileMarker) -> Any:
        type_ = self._declared(marker)
        if type_ is UNKNOWN:
            raise _Broken
        try:
            text = self._files.read(marker.path)
        except UnicodeDecodeError:
            self._refuse(marker, f"`{marker.path}` is no text in UTF-8", "`@file` reads text files")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            self._refuse(marker, f"cannot read `{marker.path}`: {reason}", PATH_HINT)
        except ValueError as error:
            self._refuse(marker, f"cannot read `{marker.path}`: {error}", PATH_HINT)
        try:
            return cast_literal(text, type_)
        except CastError as error:
            self._refuse(marker, f"`{marker.path}` holds no {type_}: {error}", None)

    def _refuse(self, marker: FileMarker, message: str, hint: str | None) -> NoReturn:
        self._report.error(marker.span, "enrich", message, hint=hint)
        raise _Broken


PATH_HINT = "the path of `@file` starts at the root of the project, whichever file it is written in"


class _Broken(Exception):
    """A part of the value cannot be had, and that has been reported."""


def inferred(written: Written) -> Type:
    """The type that a written value has by itself; a file counts as the type it declares."""
    return infer(written.value) if written.type is None else written.type


def cast_values(model: Model) -> None:
    """Make every written value one of its port's type, or note as its `problem` why it cannot be."""
    for node in model.nodes.values():
        for port in node.inputs.values():
            written = port.written
            if written is None or written.value is None or written.broken or holds_unknown(port.type):
                continue
            try:
                written.value = cast_literal(written.value, port.type)
            except CastError as error:
                written.problem = str(error)
