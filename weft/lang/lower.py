"""From the checked model to the flat program that runs."""

from __future__ import annotations

from weft.lang import graph
from weft.lang.resolve.model import Input, Model, Node


def lower(model: Model, entry: str) -> graph.Program:
    """The program of a model without errors. Wires stand in the order of the inputs they feed, so that the hash
    does not depend on where they were written."""
    nodes = []
    edges = []
    for node in model.nodes.values():
        nodes.append(_node(node))
        for port in (*node.inputs.values(), *node.gates.values()):
            link = port.wire
            if link is not None:  # Without keys: only records have any.
                edges.append(graph.Edge(link.source_name.text, link.source_port.text, node.id, port.name))
    return graph.Program(entry, tuple(nodes), tuple(edges))


def _node(node: Node) -> graph.Node:
    inputs = [_input(port) for port in (*node.inputs.values(), *node.gates.values())]
    return graph.Node(
        id=node.id,
        type=node.type,
        inputs=tuple(inputs),
        outputs=tuple([graph.OutputPort(port.name, port.type.text, port.wired) for port in node.outputs.values()]),
        label=node.label,
        tags=node.tags,
        one_of=tuple([group.ports for group in node.one_of]),
    )


def _input(port: Input) -> graph.InputPort:
    spec = port.spec
    return graph.InputPort(
        name=port.name,
        type=port.type.text,
        required=port.required,
        required_when_wired=spec.required_when_wired,
        wired=port.wire is not None,
        wire_capable=port.takes_wire(),
        created=port.created,
        literal=port.written_value(),
        default=spec.default,
        domain=spec.domain,
    )
