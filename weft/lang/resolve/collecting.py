"""What a file declares: its nodes, those written inside values too, and what is assigned to which.

Groups, loops, includes and declared types are refused here, each with one diagnostic. Their names stay known, so that
a wire to one is no second error.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from weft.lang.diagnostics import Span
from weft.lang.graph import GATES
from weft.lang.resolve.model import Assignment, Model, Node, OneOfGroup
from weft.lang.resolve.typenames import TypeNames
from weft.lang.syntax import (
    Body,
    ContainerDecl,
    Field,
    File,
    IncludeDecl,
    Inline,
    ListValue,
    Name,
    NodeDecl,
    OneOf,
    Scalar,
    Signature,
    TypeDecl,
    Wire,
    WireLine,
)

LABEL: Final = "_label"
TAGS: Final = "_tags"


@dataclass(slots=True)
class Declaration:
    """A node with its header, and the one-of groups of its braces."""

    node: Node
    signature: Signature | None
    one_of: list[OneOfGroup]


def declared_types(file: File) -> set[str]:
    return {item.name.text for item in file.items if isinstance(item, TypeDecl)}


def collect(model: Model, file: File, names: TypeNames) -> list[Declaration]:
    """Put every node into the model, with what is assigned to it; return the declarations in written order."""
    collector = _Collector(model)
    for item in file.items:
        if isinstance(item, NodeDecl):
            collector.node(item.id, item.type, item.signature, item.body)
        elif isinstance(item, WireLine):
            collector.assign(Assignment(item.node, item.port, item.value, item.span))
        elif isinstance(item, TypeDecl):
            model.report.not_yet(item.name.span, f"named types (`{item.name.text}`)")
            names.check(item.type)
        else:
            collector.refuse(item)
    collector.finish()
    return collector.declarations


class _Collector:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._assignments: list[Assignment] = []
        # Inline nodes wait in a list: they may nest, and recursion would tie the depth to the stack.
        self._inline: deque[tuple[Name, Inline]] = deque()
        self.declarations: list[Declaration] = []

    def node(self, id_: Name, type_: Name, signature: Signature | None, body: Body | None) -> None:
        self._declare(id_.text, id_.span, type_, signature, body)
        self._declare_inline()

    def _declare_inline(self) -> None:
        while self._inline:
            name, inline = self._inline.popleft()
            self._declare(name.text, inline.type.span, inline.type, inline.signature, inline.body)

    def _declare(self, id_: str, span: Span, type_: Name, signature: Signature | None, body: Body | None) -> None:
        model = self._model
        node = model.nodes[id_] = Node(id_, type_.text, span, span.start, model.types.spec(type_.text))
        if node.spec is None:
            hint = model.report.did_you_mean(type_.text, model.types.names())
            model.report.error(
                type_.span,
                "unknown-type",
                f"there is no node type `{type_.text}`",
                hint=hint or "`weft nodes` lists the types that there are",
            )
        declaration = Declaration(node, signature, [])
        self.declarations.append(declaration)
        if body is not None:
            self._body(declaration, body)

    def _body(self, declaration: Declaration, body: Body) -> None:
        node = declaration.node
        host = Name(node.id, node.span)
        for entry in body.entries:
            if isinstance(entry, Field):
                name = entry.name.text
                if name == LABEL:
                    if isinstance(entry.value, Scalar):
                        node.label = str(entry.value.value)
                elif name == TAGS:
                    if isinstance(entry.value, ListValue):
                        tags = [item.value for item in entry.value.items if isinstance(item, Scalar)]
                        node.tags = tuple(dict.fromkeys(str(tag) for tag in tags))
                else:
                    self.assign(Assignment(host, entry.name, entry.value, entry.span, entry.optional))
            elif isinstance(entry, WireLine):
                self.assign(Assignment(entry.node, entry.port, entry.value, entry.span))
            elif isinstance(entry, OneOf):
                ports = tuple(name.text for name in entry.ports)
                declaration.one_of.append(OneOfGroup(ports, entry.span))

    def assign(self, made: Assignment) -> None:
        if isinstance(made.value, Inline):
            name = f"{made.node.text}__{made.port.text}"
            self._inline.append((Name(name, made.value.type.span), made.value))
        self._assignments.append(made)

    def refuse(self, item: ContainerDecl | IncludeDecl) -> None:
        """A thing that cannot be looked into yet: reported once, and known by its name."""
        if isinstance(item, IncludeDecl):
            what, kind = "includes", "include"
        else:
            what, kind = ("groups", "group") if item.kind == "group" else ("loops", "loop")
        place = item.id.span if item.id is not None else item.span
        name = item.id.text if item.id is not None else ""
        self._model.report.not_yet(place, f"{what} (`{name}`)" if name else what)
        self._model.nodes.setdefault(name, Node(name, kind, place, place.start, None))
        if isinstance(item, ContainerDecl) and item.id is not None:
            for field in item.fields:
                if field.name.text in GATES:
                    self.assign(Assignment(item.id, field.name, field.value, field.span))

    def finish(self) -> None:
        """Hand each assignment to its node, all in written order."""
        self._declare_inline()
        self._assignments.sort(key=lambda made: made.span.start)
        nodes = self._model.nodes
        for made in self._assignments:
            node = nodes.get(made.node.text)
            if node is not None:
                node.assignments.append(made)
            elif isinstance(made.value, Wire | Inline):
                # A value with nowhere to go has been refused by the parser.
                self._model.homeless.append(made)
        in_order = sorted(nodes.values(), key=lambda node: node.position)
        self._model.nodes = {node.id: node for node in in_order}
        self.declarations.sort(key=lambda declaration: declaration.node.position)
