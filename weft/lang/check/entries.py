"""Lists that make ports: each entry an object of a known kind, with the keys of its kind and nothing else."""

from __future__ import annotations

import re
from typing import Any

from weft.lang.diagnostics import Span
from weft.lang.metadata import EntryField, EntryKind, PortsFromConfig
from weft.lang.resolve.entries import Entry, entries_of
from weft.lang.resolve.model import Model, Node, Report, Written, holds_unknown
from weft.lang.syntax import AssetMarker, Element, FileMarker, ListValue, ObjectValue, Scalar
from weft.lang.types import NUMBER, STRING, ListOf, Type, Union, assignable, is_open
from weft.lang.values import a_value, misfit


def check_entries(model: Model) -> None:
    for node in model.nodes.values():
        config = node.spec.ports_from_config if node.spec is not None else None
        port = node.inputs.get(config.field) if config is not None else None
        if config is None or port is None or port.written is None or port.written.broken or port.written.marker:
            continue
        if port.wire is None:
            _Entries(model.report, node, config, port.written).check()


class _Entries:
    """The list of one node."""

    def __init__(self, report: Report, node: Node, config: PortsFromConfig, written: Written) -> None:
        self.report = report
        self.node = node
        self.config = config
        self.written = written
        matched = node.inputs.get(config.match_input or "")
        self.matched: Type | None = None
        if matched is not None and not is_open(matched.type) and not holds_unknown(matched.type):
            self.matched = matched.type
        self.matched_name = config.match_input

    def error(self, span: Span, slug: str, message: str, hint: str | None = None) -> None:
        self.report.error(span, slug, message, hint=hint)

    def check(self) -> None:
        value = self.written.syntax
        name = f"`{self.node.id}.{self.config.field}`"
        if not isinstance(value, ListValue):
            self.error(
                self.written.span,
                "config-ports-not-a-list",
                f"{name} is a list of objects, one for each port",
                'as in `[{ "kind": "…" }]`',
            )
            return
        for item in value.items:
            if not isinstance(item, ObjectValue):
                what = a_value(item.value) if isinstance(item, Scalar) else "a List"
                self.error(item.span, "config-entry-not-an-object", f"{name} holds objects, not {what}")
        entries = list(entries_of(self.config, self.written))
        for entry in entries:
            self._entry(entry)
        self._catch_all(entries)

    def _entry(self, entry: Entry) -> None:
        if entry.kind is None:
            self._unknown_kind(entry)
            return
        key = entry.kind.key_field
        if entry.name is None:
            span = entry.parts[key][1].span if key in entry.parts else entry.span
            self.error(
                span,
                "config-entry-without-a-port",
                f"`{key}` must name the port that this entry makes: letters, digits and `_`, no digit first",
            )
        fields = {field.key: field for field in entry.kind.fields}
        for name, (written, _) in entry.parts.items():
            if name not in fields and name not in ("kind", key):
                self.error(
                    written.span,
                    "unknown-config-entry-key",
                    f"an entry of kind `{entry.kind.kind}` has no key `{name}`",
                    self.report.did_you_mean(name, (*fields, key))
                    or f"its keys are {', '.join(f'`{each}`' for each in (key, *fields))}",
                )
        for field in entry.kind.fields:
            if field.key in entry.parts:
                self._value(entry.kind, field, entry.parts[field.key][1])
            elif field.required:
                self.error(
                    entry.span,
                    "config-entry-missing-value",
                    f"an entry of kind `{entry.kind.kind}` needs the key `{field.key}`",
                )

    def _unknown_kind(self, entry: Entry) -> None:
        known = [kind.kind for kind in self.config.kinds]
        listed = f"the kinds are {', '.join(f'`{kind}`' for kind in known)}"
        if "kind" not in entry.parts:
            self.error(entry.span, "unknown-config-entry-kind", "this entry has no `kind`", listed)
            return
        written = entry.parts["kind"][1]
        if isinstance(written, Scalar) and isinstance(written.value, str):
            message = f"there is no kind `{written.value}`"
            hint = self.report.did_you_mean(written.value, known)
        else:
            message, hint = "`kind` is a String", None
        self.error(written.span, "unknown-config-entry-kind", message, hint or listed)

    def _value(self, kind: EntryKind, field: EntryField, element: Element) -> None:
        reason = self._wrong(field, _plain(element))
        if reason is not None:
            self.error(element.span, "config-entry-bad-value", f"`{field.key}` of kind `{kind.kind}`: {reason}")

    def _wrong(self, field: EntryField, value: Any) -> str | None:
        """Why a value is none that this field can hold, or None."""
        if field.non_empty and value in ("", [], {}):
            return "it is empty"
        match field.shape:
            case "typed":
                return None if field.value_type is None else misfit(value, field.value_type)
            case "value":
                return None if self.matched is None else misfit(value, self.matched)
            case "valueList":
                if not isinstance(value, list):
                    return f"{a_value(value)}, not a List"
                return None if self.matched is None else misfit(value, ListOf(self.matched))
            case "number":
                if self.matched is not None and not assignable(NUMBER, self.matched):
                    return f"`{self.matched_name}` is {self.matched}, which is never a number"
                return misfit(value, NUMBER)
            case "element":
                return self._wrong_element(value)
            case "regex":
                return self._wrong_pattern(value)

    def _wrong_element(self, value: Any) -> str | None:
        if self.matched is None:
            return None
        members = self.matched.members if isinstance(self.matched, Union) else (self.matched,)
        wanted = [each.item for each in members if isinstance(each, ListOf)]
        wanted += [STRING for each in members if each == STRING]
        if not wanted:
            return f"`{self.matched_name}` is {self.matched}, which contains nothing"
        reasons = [misfit(value, each) for each in wanted]
        return None if None in reasons else reasons[0]

    def _wrong_pattern(self, value: Any) -> str | None:
        if self.matched is not None and not assignable(STRING, self.matched):
            return f"`{self.matched_name}` is {self.matched}, which is never a text"
        if not isinstance(value, str):
            return f"{a_value(value)}, not a String"
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as problem:
            return f"it is no regular expression: {problem}"
        return None

    def _catch_all(self, entries: list[Entry]) -> None:
        catching = [entry for entry in entries if entry.kind is not None and entry.kind.catch_all]
        for entry in catching[1:]:
            self.error(
                entry.span,
                "duplicate-catch-all",
                f"there is an entry of kind `{_kind(catching[0])}` already (line {self.report.line(catching[0].span)})",
            )
        if catching and catching[0] is not entries[-1] and len(catching) == 1:
            self.error(
                catching[0].span,
                "catch-all-not-last",
                f"an entry of kind `{_kind(catching[0])}` takes all that is left: it must be the last",
            )


def _kind(entry: Entry) -> str:
    return entry.kind.kind if entry.kind is not None else ""


def _plain(element: Element) -> Any:
    match element:
        case Scalar(value=value):
            return value
        case ListValue(items):
            values = []
            for item in items:
                values.append(_plain(item))
            return values
        case ObjectValue(entries):
            held = {}
            for key, item in entries:
                held[str(key.value)] = _plain(item)
            return held
        case FileMarker() | AssetMarker():
            raise TypeError("a list that makes ports holds no markers")
