"""The rules that a node type brings along."""

from __future__ import annotations

from weft.lang.graph import MISSING
from weft.lang.metadata import Condition
from weft.lang.resolve.model import Input, Model, Node
from weft.lang.values import same


def check_rules(model: Model) -> None:
    for node in model.nodes.values():
        if node.spec is None or not node.spec.rules:
            continue
        for rule in node.spec.rules:
            if rule.when is not None and not holds(rule.when, node):
                continue
            if not holds(rule.then, node):
                tell = model.report.error if rule.severity == "error" else model.report.warning
                tell(node.span, "rule-structural", f"`{node.id}` ({node.type}): {rule.message}")


def holds(condition: Condition, node: Node) -> bool:
    """Whether the answer to the question is yes for this node."""
    match condition.question:
        case "all":
            return all(holds(part, node) for part in condition.parts)
        case "any":
            return any(holds(part, node) for part in condition.parts)
        case "not":
            return not any(holds(part, node) for part in condition.parts)
        case "output_wired":
            output = node.outputs.get(condition.subject or "")
            return output is not None and output.wired
    port = node.inputs.get(condition.subject or "")
    if port is None:
        return False
    match condition.question:
        case "input_wired":
            return port.wire is not None
        case "input_satisfied":
            return port.filled() or port.spec.default is not MISSING
        case "config_present":
            return port.written_value() is not MISSING
        case "config_nonempty":
            return _nonempty(port)
        case _:
            return port.written is not None and same(port.written.value, condition.value)


def _nonempty(port: Input) -> bool:
    value = port.written_value()
    if port.written is not None and port.written.broken:
        return True
    return value is not MISSING and value is not None and value != "" and value != [] and value != {}
