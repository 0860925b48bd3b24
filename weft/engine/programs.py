"""A compiled program made ready to run: its plan, its nodes' ports, the classes that serve it.

Made once per program and selection and shared by every run of it. A node whose class is gone is no error here: the run
fails at that node, and says so (`executor.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from weft.errors import NodeError
from weft.flow.selection import Selection
from weft.flow.state import Plan
from weft.lang.graph import GATES, MISSING, Node, Program
from weft.lang.metadata import NodeSpec
from weft.nodes.api import Node as NodeClass
from weft.nodes.firing.ports import NodePorts
from weft.nodes.registry import Registry

CACHED_PROGRAMS = 200


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """What a firing of one node needs: the compiled node, its ports, its class (None when the code is gone).

    `changed` says which ports of the compiled node its class has no more, or needs besides; None: it still fits.
    """

    node: Node
    ports: NodePorts
    cls: type[NodeClass] | None
    pure: bool
    rerun: bool
    changed: str | None


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
                changed=_changed(node, self.registry.spec(node.type)),
            )
            self._nodes[node_id] = found
        return found


def _changed(node: Node, spec: NodeSpec | None) -> str | None:
    """What of a node that was compiled earlier its type cannot serve any more; ports that nothing uses do not count."""
    if spec is None:
        return None
    has, needs = {port.name for port in spec.inputs}, {port.name for port in spec.inputs if port.required}
    gives = {port.name for port in spec.outputs}
    from_list = spec.ports_from_config is not None
    makes_outputs = spec.created_outputs or from_list
    changes = [
        f"it has no input `{port.name}` any more"
        for port in node.inputs
        if (port.wired or port.literal is not MISSING)
        and port.name not in (*has, *GATES)
        and not (from_list or (port.created and spec.created_inputs is not None))
    ]
    changes += [
        f"it has no output `{port.name}` any more"
        for port in node.outputs
        if port.wired and port.name not in gives and not makes_outputs
    ]
    compiled = {port.name for port in node.inputs}
    changes += [f"it needs an input `{name}` now" for name in sorted(needs - compiled)]
    return ", ".join(changes) or None


Inputs = dict[str, dict[str, Any]]
"""`{node: {port: value}}`, each as if it were written there."""


def _no_programs(path: str, _inputs: Inputs) -> Program:
    raise NodeError(f"the program {path} cannot be found: this worker has no project folder")


@dataclass
class ProjectCode:
    """A project that this process serves: its number in the store, its key, the node code found in its folder.

    `compile` makes a program of a path in that folder, for runs that start runs; it raises NodeError.
    """

    number: int
    key: str
    registry: Registry
    compile: Callable[[str, Inputs], Program] = _no_programs
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
