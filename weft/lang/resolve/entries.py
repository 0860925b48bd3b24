"""Ports that a written list makes: its entries, and the ports that the well-formed ones add.

What is wrong with an entry is for `check/entries.py` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from weft.lang.diagnostics import Span
from weft.lang.metadata import EntryKind, InputSpec, PortsFromConfig, PortTemplate
from weft.lang.resolve.model import Input, Node, Output, Written
from weft.lang.syntax import Element, ListValue, ObjectValue, Scalar
from weft.lang.types import AUTO, Type, Variable, is_open, substitute

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True)
class Entry:
    """One object of the list: what its keys hold, nulls left out, and the kind and name where they are right."""

    syntax: ObjectValue
    parts: dict[str, tuple[Scalar, Element]]
    kind: EntryKind | None
    name: str | None

    @property
    def span(self) -> Span:
        return self.syntax.span


def entries_of(config: PortsFromConfig, written: Written) -> Iterator[Entry]:
    """The objects of the list, in written order; none where the value is no list."""
    if not isinstance(written.syntax, ListValue):
        return
    kinds = {kind.kind: kind for kind in config.kinds}
    for item in written.syntax.items:
        if not isinstance(item, ObjectValue):
            continue
        parts = {str(key.value): (key, value) for key, value in item.entries if not _is_null(value)}
        kind = kinds.get(str(_text(parts, "kind")))
        yield Entry(item, parts, kind, None if kind is None else _text(parts, kind.key_field, _NAME))


def _is_null(value: Element) -> bool:
    return isinstance(value, Scalar) and value.value is None


def _text(parts: dict[str, tuple[Scalar, Element]], key: str, shape: re.Pattern[str] | None = None) -> str | None:
    value = parts[key][1] if key in parts else None
    if not isinstance(value, Scalar) or not isinstance(value.value, str):
        return None
    return value.value if shape is None or shape.fullmatch(value.value) else None


def add_ports(node: Node, config: PortsFromConfig, written: Written) -> None:
    """Give the node the ports that its entries add; a name that is there already is noted and left alone."""
    for entry in entries_of(config, written):
        if entry.kind is None or entry.name is None:
            continue
        for template in entry.kind.adds_inputs:
            name, type_ = _port(template, entry.name)
            if name in node.inputs:
                node.repeated_ports.append((name, entry.span))
                continue
            spec = InputSpec(name, type_, template.required)
            node.inputs[name] = Input(name, spec, type_, template.required, is_open(type_), span=entry.span)
        for template in entry.kind.adds_outputs:
            name, type_ = _port(template, entry.name)
            if name in node.outputs:
                node.repeated_ports.append((name, entry.span))
                continue
            node.outputs[name] = Output(name, type_, is_open(type_), span=entry.span)


def _port(template: PortTemplate, key: str) -> tuple[str, Type]:
    name = template.name_template.replace("{key}", key)
    return name, own_variable(template.type, f"list {name}")


def own_variable(type_: Type, port: str) -> Type:
    """`T_Auto` in a port's type made into a variable that only this port has."""
    if not is_open(type_):
        return type_
    return substitute(type_, lambda v: fresh_variable(port) if v == AUTO else v)


def fresh_variable(port: str) -> Variable:
    return Variable(f"{AUTO.name}:{port}")
