"""Inputs that must be driven and are not."""

from __future__ import annotations

from weft.lang.graph import MISSING
from weft.lang.resolve.model import UNKNOWN, Model, Node, Report


def check_coverage(model: Model) -> None:
    for node in model.nodes.values():
        if node.spec is None:
            continue
        for port in node.inputs.values():
            if port.type is UNKNOWN or not port.required:
                continue
            if not port.filled() and port.spec.default is MISSING:
                model.report.error(
                    node.span,
                    "required-port-unmet",
                    f"`{node.id}` ({node.type}) needs its input `{port.name}`",
                    hint=f"write `{port.name}: …` in its braces: a value, or a wire such as `node.port`",
                )
        if node.one_of:
            _one_of(model.report, node)


def _one_of(report: Report, node: Node) -> None:
    for group in node.one_of:
        span = group.span or node.span
        known = [name for name in group.ports if name in node.inputs]
        for name in group.ports:
            if name not in node.inputs:
                report.error(
                    span,
                    "require-one-of-unknown-port",
                    f"`{node.id}` has no input `{name}`",
                    hint=report.did_you_mean(name, node.inputs),
                )
        if known == list(group.ports) and not any(node.inputs[name].filled() for name in known):
            listed = ", ".join(f"`{name}`" for name in group.ports)
            report.error(
                node.span,
                "require-one-of-unmet",
                f"`{node.id}` needs one of its inputs {listed}, and none is wired or written",
            )
