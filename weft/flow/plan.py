"""What a program and a selection fix for every run of it: who feeds whom, and what a node has before anything
comes.

Computed once and shared by any number of runs, which never change it. The selection is settled here: a wire
whose source is not in the run is a value (handed, or of `--emit`) or a closure from the start, so the fold
sees only wires that a firing of this run will speak on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from weft.flow.events import NOWHERE, Key
from weft.flow.ready import Kick, decide
from weft.flow.selection import Selection, select
from weft.lang.graph import FLOW_GATE, GATES, MISSING, NO_FLOW_GATE, Edge, Node, Program


@dataclass(slots=True, eq=False)
class NodePlan:
    """One node of the run.

    `wires` has an entry for each output: the inputs in this run that it feeds. `awaits` names, for each input
    that a firing of this run feeds, the output it comes from; `awaited` counts those wires. `given` is what
    an input has without any firing (literal, default, handed, of `--emit`), `shut` are the inputs closed from
    the start, `handed` is what stands in where a live wire closes; `contested` are the inputs that several
    wires feed. The other fields are what `ready.decide` asks about; `plain` says that its answer is None
    whenever nothing closed.
    """

    id: str
    order: int
    ports: tuple[str, ...]
    given: dict[str, Any]
    defaulted: frozenset[str]
    needed: tuple[str, ...]
    capable: tuple[str, ...]
    one_of: tuple[tuple[str, ...], ...]
    flow_gate: bool
    no_flow_gate: bool
    wires: dict[str, Wires] = field(default_factory=dict, repr=False)
    awaits: dict[str, str] = field(default_factory=dict)
    awaited: int = 0
    shut: tuple[str, ...] = ()
    handed: dict[str, Any] = field(default_factory=dict)
    contested: frozenset[str] = frozenset()
    plain: bool = False


Wires = tuple[tuple[NodePlan, str], ...]
"""The inputs that one output feeds."""

_NOTHING_CLOSED: Final[dict[str, Any]] = {}


class Plan:
    """A program with the part of it that runs. SelectionRefused where that part cannot run by itself."""

    __slots__ = ("kicks", "nodes", "selected")

    def __init__(self, program: Program, selection: Selection | None = None) -> None:
        self.selected = select(program, selection or Selection())
        wired = {(edge.target, edge.target_port) for edge in program.edges}
        chosen = frozenset(self.selected.nodes)
        self.nodes: dict[str, NodePlan] = {
            node.id: self._node(node, order, wired) for order, node in enumerate(program.nodes) if node.id in chosen
        }
        self._connect(program.edges)
        for node in self.nodes.values():
            present = dict.fromkeys(node.awaits)
            gated = node.flow_gate or node.no_flow_gate
            node.plain = not gated and decide(node, present, _NOTHING_CLOSED) is None
        self.kicks: dict[Key, Kick] = {
            (node.id, NOWHERE): Kick(node.id, NOWHERE) for node in self.nodes.values() if not node.awaited
        }

    def _node(self, node: Node, order: int, wired: set[tuple[str, str]]) -> NodePlan:
        handed = self.selected.handed.get(node.id, {})
        given: dict[str, Any] = {}
        defaulted: set[str] = set()
        needed: list[str] = []
        for port in node.inputs:
            name = port.name
            if (node.id, name) in wired:
                if (port.required or port.required_when_wired) and name not in GATES:
                    needed.append(name)
            elif port.literal is not MISSING:
                given[name] = port.literal
            elif port.default is not MISSING:
                given[name] = port.default
                defaulted.add(name)
        given.update((name, value) for name, value in handed.items() if (node.id, name) not in wired)
        names = tuple(port.name for port in node.inputs)
        return NodePlan(
            id=node.id,
            order=order,
            ports=tuple(name for name in names if name not in GATES),
            given=given,
            defaulted=frozenset(defaulted - handed.keys()),
            needed=tuple(needed),
            capable=tuple(port.name for port in node.inputs if port.wire_capable and port.name not in GATES),
            one_of=node.one_of,
            flow_gate=FLOW_GATE in names or FLOW_GATE in handed,
            no_flow_gate=NO_FLOW_GATE in names or NO_FLOW_GATE in handed,
            wires={port.name: () for port in node.outputs},
        )

    def _connect(self, edges: tuple[Edge, ...]) -> None:
        fed: dict[tuple[str, str], list[tuple[NodePlan, str]]] = {}
        for edge in edges:
            target = self.nodes.get(edge.target)
            if target is None:
                continue
            port = edge.target_port
            if edge.source in self.nodes:
                fed.setdefault((edge.source, edge.source_port), []).append((target, port))
                if port in target.awaits:
                    target.contested |= {port}
                target.awaits[port] = f"{edge.source}.{edge.source_port}"
                target.awaited += 1
                continue
            value = self.selected.supply(edge)
            if value is MISSING:
                target.shut += (port,)
            else:
                target.given[port] = value
        for (source, port), targets in fed.items():
            self.nodes[source].wires[port] = tuple(targets)
        for target in self.nodes.values():
            given_by_hand = self.selected.handed.get(target.id, {})
            target.handed = {port: value for port, value in given_by_hand.items() if port in target.awaits}
