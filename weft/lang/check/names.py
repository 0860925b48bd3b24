"""Names that stand there twice, and names that a node type has taken."""

from __future__ import annotations

from weft.lang.resolve.model import Model


def check_names(model: Model) -> None:
    report = model.report
    for first, span in model.collisions:
        report.error(
            span,
            "duplicate-node-id",
            f"there is a node `{first.id}` already (line {report.line(first.span)})",
            hint="a node written inside a value is called after its host and field: give one of the two "
            "a name of its own"
            if "__" in first.id
            else "give one of the two another name",
        )
    for node in model.nodes.values():
        for name, span in node.repeated_ports:
            report.error(
                span,
                "duplicate-port",
                f"`{node.id}` has a port `{name}` already",
                hint="name the port of this entry differently",
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
