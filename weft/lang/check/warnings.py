"""What compiles and is probably not meant: nodes that nothing can skip, levels that nobody can read."""

from __future__ import annotations

from typing import Final

from weft.lang.resolve.model import Model, Node

LEVEL_SIZE: Final = 15
"""How many items one level may have before it is hard to read."""


def check_required_skips(model: Model) -> None:
    for node in model.nodes.values():
        spec = node.spec
        if spec is None or not node.outputs or node.one_of:
            continue
        if spec.created_inputs is not None and not spec.created_inputs.required:
            continue
        # A port that stands for an entry of a list is there to be filled: a form's field, not what decides whether
        # to ask.
        entries = {port.name for port in node.inputs.values() if not port.created} - {port.name for port in spec.inputs}
        wired = [port for port in node.inputs.values() if port.wire is not None and port.name not in entries]
        if not wired or any(port.required or port.spec.required_when_wired for port in wired):
            continue
        if any(gate.wire is not None for gate in node.gates.values()):
            continue
        listed = ", ".join(f"`{port.name}`" for port in wired)
        model.report.warning(
            node.span,
            "no-required-skip",
            f"none of the wired inputs of `{node.id}` is required ({listed}): "
            "what comes before can close them without skipping it",
            hint="make one of them required, or say when it runs with `_should_flow`",
        )


def check_level_sizes(model: Model) -> None:
    """The top level is counted by its parts that wires hold together; a group is one item of its level."""
    part_of = _parts(model)
    sizes: dict[str, int] = {}
    for root in part_of.values():
        sizes[root] = sizes.get(root, 0) + 1
    for id_, root in part_of.items():
        size = sizes.pop(root, 0)
        if size > LEVEL_SIZE:
            node: Node = model.nodes[id_]
            model.report.warning(
                node.span,
                "level-too-large",
                f"{size} items are wired together on one level, from `{id_}` on; "
                f"more than {LEVEL_SIZE} are hard to follow",
                hint="put what belongs together into a group",
            )


def _parts(model: Model) -> dict[str, str]:
    """For each node, in written order, the name of the connected part it is in (union-find)."""
    parent = {id_: id_ for id_ in model.nodes}

    def root(id_: str) -> str:
        while parent[id_] != id_:
            parent[id_] = parent[parent[id_]]
            id_ = parent[id_]
        return id_

    for link in model.links:
        if link.source is not None and link.target is not None:
            a, b = root(link.source.id), root(link.target.id)
            if a != b:
                parent[b] = a
    return {id_: root(id_) for id_ in model.nodes}
