"""A compiled program made ready to run: its plan, its nodes' ports, the classes that serve it.

Made once per program and selection and shared by every run of it. A node whose class is gone is no error here: the run
fails at that node, and says so (`executor.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from weft.flow.selection import Selection
from weft.flow.state import Plan
from weft.lang.graph import Node, Program
from weft.nodes.api import Node as NodeClass
from weft.nodes.ports import NodePorts
from weft.nodes.registry import Registry

CACHED_PROGRAMS = 200


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """What a firing of one node needs: the compiled node, its ports, its class (None when the code is gone)."""

    node: Node
    ports: NodePorts
    cls: type[NodeClass] | None
    pure: bool
    rerun: bool


@dataclass
class ReadyProgram:
    """A program with the node classes of its project; what a node needs is prepared when its first firing starts."""

    program: Program
    plan: Plan
    registry: Registry
    _nodes: dict[str, NodeRuntime] = field(default_factory=dict)

    @cached_property
    def _compiled(self) -> dict[str, Node]:
        return {node.id: node for node in self.program.nodes}

    def node(self, node_id: str) -> NodeRuntime:
        found = self._nodes.get(node_id)
        if found is None:
            node = self._compiled[node_id]
            cls = self.registry.node_class(node.type)
            found = NodeRuntime(
                node,
                NodePorts.of(node),
                cls,
                pure=cls is not None and cls.pure,
                rerun=cls is None or cls.rerun,
            )
            self._nodes[node_id] = found
        return found


@dataclass
class ProjectCode:
    """A project that this process serves: its number in the store, its key, and the node code found in its folder."""

    number: int
    key: str
    registry: Registry
    _ready: OrderedDict[tuple[str, str], ReadyProgram] = field(default_factory=OrderedDict)

    def ready(self, program: Program, selection: dict[str, Any] | None) -> ReadyProgram:
        """The program made ready under a selection (its JSON form); the most recent ones are kept."""
        key = (program.hash, repr(selection or {}))
        found = self._ready.get(key)
        if found is None:
            chosen = Selection.from_json(selection) if selection else None
            found = ReadyProgram(program, Plan(program, chosen), self.registry)
            self._ready[key] = found
            if len(self._ready) > CACHED_PROGRAMS:
                self._ready.popitem(last=False)
        else:
            self._ready.move_to_end(key)
        return found
