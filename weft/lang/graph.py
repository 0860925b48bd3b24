"""The compiled program: flat, immutable, JSON both ways, named by its hash.

This is the one module of `lang` that the runtime reads. Types stand here as canonical text (`List[String]`),
since a running program only ever asks whether a value fits one. A program is complete: a run needs no source
file, and goes on with the program that it was started with however the files change.
"""

from __future__ import annotations

import enum
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final

FORMAT: Final = 1
"""Grows when the JSON form changes in a way that an older reader would misread."""

FLOW_GATE: Final = "_should_flow"
NO_FLOW_GATE: Final = "_should_not_flow"
GATES: Final = (FLOW_GATE, NO_FLOW_GATE)


class Missing(enum.Enum):
    """Told apart from null: no literal, no default, no value."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Domain:
    """What a value must be beyond its type: bounds, whole numbers, or one (or some) of a list of options."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False
    options: tuple[Any, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self.minimum is not None:
            out["min"] = self.minimum
        if self.maximum is not None:
            out["max"] = self.maximum
        if self.whole:
            out["whole"] = True
        if self.options is not None:
            out["options"] = list(self.options)
        return out

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Domain:
        options = data.get("options")
        return cls(
            data.get("min"),
            data.get("max"),
            data.get("whole", False),
            None if options is None else tuple(options),
        )


@dataclass(frozen=True, slots=True)
class InputPort:
    """An input of a compiled node, gates included where they are wired or written.

    `literal` is the written value (already cast to the type), `default` what stands in when nothing drives
    the port. Both are `MISSING` when there is none. `created`: the program, not the node type, made the port.
    """

    name: str
    type: str
    required: bool = False
    required_when_wired: bool = False
    wired: bool = False
    wire_capable: bool = True
    created: bool = False
    literal: Any = MISSING
    default: Any = MISSING
    domain: Domain | None = None


@dataclass(frozen=True, slots=True)
class OutputPort:
    """An output: its type as the program resolved it, and whether anything hangs on it."""

    name: str
    type: str
    wired: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One node, its ports in source order. `scope` is the chain of containers around it, outermost first."""

    id: str
    type: str
    inputs: tuple[InputPort, ...] = ()
    outputs: tuple[OutputPort, ...] = ()
    label: str | None = None
    tags: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A wire. `keys` are read from the value on the way."""

    source: str
    source_port: str
    target: str
    target_port: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Nodes in source order and the wires between them. `entry` is the file as a person would name it."""

    entry: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    _text: str = field(default="", repr=False, compare=False)
    _hash: str = field(default="", repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "entry": self.entry,
            "nodes": [_node_json(node) for node in self.nodes],
            "edges": [
                [edge.source, edge.source_port, edge.target, edge.target_port, *edge.keys] for edge in self.edges
            ],
        }

    def text(self) -> str:
        """The canonical JSON text: what is stored, and what the hash is taken over."""
        if not self._text:
            text = json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            object.__setattr__(self, "_text", text)
        return self._text

    @property
    def hash(self) -> str:
        """SHA-256 over the canonical text, in hexadecimal."""
        if not self._hash:
            object.__setattr__(self, "_hash", hashlib.sha256(self.text().encode()).hexdigest())
        return self._hash

    @classmethod
    def from_text(cls, text: str) -> Program:
        """The program that `text` made the text of. ValueError for one that a newer weft made."""
        data = json.loads(text)
        if data["format"] > FORMAT:
            raise ValueError(f"program format {data['format']} is newer than this weft reads ({FORMAT})")
        return cls(
            entry=data["entry"],
            nodes=tuple(_node_from_json(node) for node in data["nodes"]),
            edges=tuple(_edge_from_json(*edge) for edge in data["edges"]),
            _text=text,
        )


def _node_json(node: Node) -> dict[str, Any]:
    out: dict[str, Any] = {"id": node.id, "type": node.type}
    if node.label is not None:
        out["label"] = node.label
    if node.tags:
        out["tags"] = list(node.tags)
    if node.scope:
        out["scope"] = list(node.scope)
    if node.inputs:
        out["inputs"] = [_input_json(port) for port in node.inputs]
    if node.outputs:
        out["outputs"] = [[port.name, port.type, port.wired] for port in node.outputs]
    if node.one_of:
        out["one_of"] = [list(group) for group in node.one_of]
    return out


def _input_json(port: InputPort) -> dict[str, Any]:
    out: dict[str, Any] = {"name": port.name, "type": port.type}
    for flag in ("required", "required_when_wired", "wired", "created"):
        if getattr(port, flag):
            out[flag] = True
    if not port.wire_capable:
        out["wire_capable"] = False
    if port.literal is not MISSING:
        out["literal"] = port.literal
    if port.default is not MISSING:
        out["default"] = port.default
    if port.domain is not None:
        out["domain"] = port.domain.to_json()
    return out


def _edge_from_json(source: str, source_port: str, target: str, target_port: str, *keys: str) -> Edge:
    return Edge(source, source_port, target, target_port, keys)


def _node_from_json(data: dict[str, Any]) -> Node:
    return Node(
        id=data["id"],
        type=data["type"],
        inputs=tuple(
            InputPort(**{**port, "domain": Domain.from_json(port["domain"]) if "domain" in port else None})
            for port in data.get("inputs", ())
        ),
        outputs=tuple(OutputPort(*port) for port in data.get("outputs", ())),
        label=data.get("label"),
        tags=tuple(data.get("tags", ())),
        scope=tuple(data.get("scope", ())),
        one_of=tuple(tuple(group) for group in data.get("one_of", ())),
    )
