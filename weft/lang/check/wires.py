"""Wires whose ends are not there, that read keys of what has none, or that share an input."""

from __future__ import annotations

from weft.lang.diagnostics import Span
from weft.lang.metadata import NodeSpec
from weft.lang.resolve.model import Link, Model, Node, Report, holds_unknown
from weft.lang.resolve.variables import holds_must_override
from weft.lang.syntax import Name
from weft.lang.types import Type


def check_wires(model: Model) -> None:
    """Both ends of every wire, and the keys that it reads."""
    for link in model.links:
        if link.source is None:
            _unknown_node(model, link.source_name, "unknown-source-node")
        if link.target is None:
            _unknown_node(model, link.target_name, "unknown-target-node")
    for link in model.links:
        if link.source is not None and link.output is None and link.source.spec is not None:
            _unknown_output(model.report, link.source, link.source.spec, link.source_port)
        if link.target is not None and link.input is None and link.target.spec is not None:
            _unknown_input(model.report, link.target, link.target.spec, link.target_port)
        if link.keys and link.output is not None and not _told(link.output.type):
            _keys(model.report, link)


def _told(type_: Type) -> bool:
    return holds_unknown(type_) or holds_must_override(type_)


def _unknown_node(model: Model, name: Name, slug: str) -> None:
    if name.text == "self":
        message = "`self` stands for the group around it, and there is no group here"
        model.report.error(name.span, slug, message)
        return
    hint = model.report.did_you_mean(name.text, model.nodes)
    model.report.error(name.span, slug, f"there is no node `{name.text}`", hint=hint)


def _unknown_output(report: Report, node: Node, spec: NodeSpec, name: Name) -> None:
    if name.text in node.inputs:
        message = f"`{name.text}` is an input of `{node.id}`; a wire reads an output"
    else:
        message = f"`{node.id}` ({spec.type}) has no output `{name.text}`"
    hint = report.did_you_mean(name.text, node.outputs)
    if hint is None and spec.created_outputs:
        hint = f"declare it in the header: `{node.id} = {spec.type} -> ({name.text}: String)`"
    report.error(name.span, "unknown-source-port", message, hint=hint or _has("outputs", node.outputs))


def _unknown_input(report: Report, node: Node, spec: NodeSpec, name: Name) -> None:
    if name.text in node.outputs:
        message = f"`{name.text}` is an output of `{node.id}`; a wire feeds an input"
    else:
        message = f"`{node.id}` ({spec.type}) has no input `{name.text}`"
    hint = report.did_you_mean(name.text, node.inputs)
    report.error(name.span, "unknown-target-port", message, hint=hint or _has("inputs", node.inputs))


def _has(what: str, names: object) -> str:
    listed = ", ".join(f"`{name}`" for name in names) if isinstance(names, dict) else ""
    return f"its {what} are {listed}" if listed else f"it has no {what}"


def _keys(report: Report, link: Link) -> None:
    assert link.output is not None
    first, last = link.keys[0], link.keys[-1]
    path = ".".join(key.text for key in link.keys)
    report.error(
        first.span.to(last.span),
        "deref-path",
        f"cannot read `{path}` from `{link.source_name.text}.{link.source_port.text}`: "
        f"it is {link.output.type}, and only the fields of a record can be read",
        hint="read it in a node of its own, such as ExecPython",
    )


def check_drivers(model: Model) -> None:
    """Inputs that are wired twice, or wired and written."""
    report = model.report
    for first, second in model.doubled_links:
        report.error(
            second.span,
            "duplicate-input-port",
            f"`{second.target_name.text}.{second.target_port.text}` is wired twice: from {_source(first)} on line "
            f"{report.line(first.span)} and from {_source(second)} on line {report.line(second.span)}",
            hint="an input takes one wire; FirstInOrder joins several",
        )
    for node in model.nodes.values():
        for port in (*node.inputs.values(), *node.gates.values()):
            if port.wire is not None and port.written is not None:
                wire, written = port.wire.span, port.written.span
                report.error(
                    _later(wire, written),
                    "double-driven-port",
                    f"`{node.id}.{port.name}` has a written value on line {report.line(written)} "
                    f"and a wire on line {report.line(wire)}",
                    hint="an input takes one or the other: remove one of them",
                )


def _later(a: Span, b: Span) -> Span:
    return a if a.start > b.start else b


def _source(link: Link) -> str:
    return f"`{link.source_name.text}.{link.source_port.text}`"
