"""Ports that a list makes twice, and names that a node type has taken.

Nodes and keys that are written twice are for the parser to refuse: it sees them without knowing a node type.
"""

from __future__ import annotations

from weft.lang.resolve.model import Model


def check_names(model: Model) -> None:
    for node in model.nodes.values():
        for name, span in node.repeated_ports:
            model.report.error(
                span,
                "duplicate-port",
                f"`{node.id}` has a port `{name}` already",
                hint="give one of the two another name",
            )


def check_reserved_names(model: Model) -> None:
    taken = model.types.spec
    for node in model.nodes.values():
        if node.spec is not None and taken(node.id) is not None:
            model.report.error(
                node.span,
                "reserved-name",
                f"`{node.id}` is a node type and cannot be the name of a node",
                hint=f"as in `{node.id.lower()} = {node.type} {{ … }}`",
            )
