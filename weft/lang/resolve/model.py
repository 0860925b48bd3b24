"""The program while it is being compiled: nodes with their ports, wires with their ends, and what was found.

Plain mutable data. `resolve` fills it, `check/` reads it, `lower` turns it into the program that runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from weft.lang.diagnostics import Diagnostic, Source, Span, nearest
from weft.lang.graph import MISSING
from weft.lang.metadata import InputSpec, NodeSpec, NodeTypes
from weft.lang.syntax import Name, Value
from weft.lang.types import Primitive, Type, admits_null, walk

UNKNOWN: Final = Primitive("?")
"""The type of what an error was already reported for. Nothing that touches it is reported again."""


@lru_cache(maxsize=4096)
def holds_unknown(type_: Type) -> bool:
    """Whether any part of the type is one that an error was already reported for."""
    return UNKNOWN in walk(type_)


@dataclass(slots=True)
class Written:
    """A written value: `value` as it stands there, and cast once the type of its port is known.

    `marker` says that a `@file` is in it, `problem` why the value cannot be one of the port's type. `broken`
    says that it has been reported: it fills its port all the same, so that one mistake is one diagnostic.
    """

    syntax: Value
    value: Any
    span: Span
    type: Type | None = None
    marker: bool = False
    problem: str | None = None
    broken: bool = False


@dataclass(slots=True)
class Input:
    """An input of one node. `open` says that its type still holds a variable; `spec` holds what cannot change."""

    name: str
    spec: InputSpec
    type: Type
    required: bool
    open: bool = False
    created: bool = False
    span: Span | None = None
    written: Written | None = None
    wire: Link | None = None

    def takes_wire(self) -> bool:
        return self.spec.accepts != "literal" and not self.spec.compiler_read

    def filled(self) -> bool:
        """Whether something drives it: a wire, or a value that fills it."""
        return self.wire is not None or self.written_value() is not MISSING

    def written_value(self) -> Any:
        """The value that fills the port, or MISSING. Null fills only a port whose type admits it."""
        written = self.written
        if written is None:
            return MISSING
        if written.value is None and not written.broken and not self.takes_null():
            return MISSING
        return written.value

    def takes_null(self) -> bool:
        return self.type is UNKNOWN or admits_null(self.type)


@dataclass(slots=True)
class Output:
    name: str
    type: Type
    open: bool = False
    wired: bool = False
    span: Span | None = None


@dataclass(slots=True)
class OneOfGroup:
    """Inputs of which one must be driven. `span` is None where the node type asks for it."""

    ports: tuple[str, ...]
    span: Span | None


@dataclass(slots=True)
class Node:
    """A node, or (`spec` is None) a thing that cannot be looked into, of which nothing more is reported.

    `span` is where its name stands, `position` orders the nodes as written.
    """

    id: str
    type: str
    span: Span
    position: int
    spec: NodeSpec | None
    inputs: dict[str, Input] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    gates: dict[str, Input] = field(default_factory=dict)
    label: str | None = None
    tags: tuple[str, ...] = ()
    one_of: list[OneOfGroup] = field(default_factory=list)
    bindings: dict[str, Type] = field(default_factory=dict)
    assignments: list[Assignment] = field(default_factory=list)
    repeated_ports: list[tuple[str, Span]] = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """A wire. An end is None where it was not found; what is wrong with it is for the checks to say."""

    source_name: Name
    source_port: Name
    keys: list[Name]
    target_name: Name
    target_port: Name
    span: Span
    source: Node | None = None
    output: Output | None = None
    target: Node | None = None
    input: Input | None = None

    def second(self) -> bool:
        """Whether another wire feeds its input already."""
        return self.input is not None and self.input.wire is not self


@dataclass(slots=True)
class Assignment:
    """`node.port = value`, in whichever form it was written. `optional` says that a `?` follows the name."""

    node: Name
    port: Name
    value: Value
    span: Span
    optional: bool = False


@dataclass(slots=True)
class Misplaced:
    """A written value on something that is no input of its node."""

    node: Node
    assignment: Assignment


class Report:
    """Collects the diagnostics of one source, and says where things stand."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        # Comparing names costs time: a file with thousands of unknown names gets hints for the first ones.
        self._comparisons_left = 40_000

    def error(self, span: Span, slug: str, message: str, *, hint: str | None = None) -> None:
        self.found.append(Diagnostic.at(self.source, span, slug, message, hint=hint))

    def warning(self, span: Span, slug: str, message: str, *, hint: str | None = None) -> None:
        self.found.append(Diagnostic.at(self.source, span, slug, message, hint=hint, severity="warning"))

    def not_yet(self, span: Span, what: str) -> None:
        self.error(span, "not-yet-supported", f"{what} are not supported yet")

    def line(self, span: Span) -> int:
        return self.source.position(span.start)[0]

    def did_you_mean(self, name: str, known: Iterable[str]) -> str | None:
        """A hint with the nearest known name, or None."""
        candidates = list(known)
        self._comparisons_left -= len(candidates)
        if self._comparisons_left < 0:
            return None
        found = nearest(name, candidates)
        return None if found is None else f"did you mean `{found}`?"


@dataclass(slots=True)
class Model:
    """The whole program: `nodes` and `links` in written order."""

    report: Report
    types: NodeTypes
    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    misplaced: list[Misplaced] = field(default_factory=list)
    homeless: list[Assignment] = field(default_factory=list)
    """Wires into nodes that are not there."""
    doubled_links: list[tuple[Link, Link]] = field(default_factory=list)

    def dissolve(self) -> None:
        """Let nodes and wires go of each other, so that all of it is freed without the cycle collector."""
        for link in self.links:
            link.source = link.target = None
            link.output = link.input = None
