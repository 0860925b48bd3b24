"""Written values: on the right port, of the right type, in the domain, where a value may be written at all."""

from __future__ import annotations

from dataclasses import replace

from weft.lang.graph import FLOW_GATE, NO_FLOW_GATE
from weft.lang.resolve.model import Input, Misplaced, Model, Node, Report, Written
from weft.lang.values import outside


def check_values(model: Model) -> None:
    for misplaced in model.misplaced:
        _misplaced(model.report, misplaced)
    for node in model.nodes.values():
        for port in node.inputs.values():
            if port.written is not None and port.wire is None:
                _accepts(model.report, node, port, port.written)
                _value(model.report, node, port, port.written)
            elif port.wire is not None and port.written is None:
                _wire(model.report, node, port)


def _misplaced(report: Report, misplaced: Misplaced) -> None:
    node, port = misplaced.node, misplaced.assignment.port
    assert node.spec is not None
    if port.text in node.outputs:
        report.error(
            port.span,
            "value-on-output",
            f"`{port.text}` is an output of `{node.id}`: the node sends it, and no value can be written on it",
        )
        return
    hint = report.did_you_mean(port.text, node.inputs)
    if hint is None and node.inputs:
        hint = f"its inputs are {', '.join(f'`{name}`' for name in node.inputs)}"
    report.error(
        port.span,
        "undeclared-port-no-custom",
        f"{node.spec.type} has no input `{port.text}` and takes no inputs of your own",
        hint=hint,
    )


def _accepts(report: Report, node: Node, port: Input, written: Written) -> None:
    name = f"`{node.id}.{port.name}`"
    if port.spec.compiler_read and written.marker:
        report.error(
            written.span,
            "input-accepts",
            f"{name} is read by the compiler: its value must be written in place, not in a file",
        )
    elif port.spec.accepts == "wire":
        report.error(
            written.span,
            "input-accepts",
            f"{name} takes a wire, not a written value",
            hint="write the value in a node, such as Text, and wire that",
        )


def _wire(report: Report, node: Node, port: Input) -> None:
    assert port.wire is not None
    name = f"`{node.id}.{port.name}`"
    if port.spec.compiler_read:
        message = f"{name} is read by the compiler: its value must be written in place, not wired"
    elif port.spec.accepts == "literal":
        message = f"{name} takes a written value, not a wire"
    else:
        return
    report.error(port.wire.span, "input-accepts", message)


def _value(report: Report, node: Node, port: Input, written: Written) -> None:
    name = f"`{node.id}.{port.name}`"
    if written.problem is not None:
        config = node.spec.ports_from_config if node.spec is not None else None
        if config is None or config.field != port.name:
            message = f"{name} takes {port.type}: {written.problem}"
            report.error(written.span, "config-type-mismatch", message)
        return
    domain = port.spec.domain
    if domain is None or written.broken:
        return
    reason = outside(written.value, replace(domain, options=None))
    if reason is not None:
        report.error(written.span, "literal-out-of-range", f"{name}: {reason}")
        return
    reason = outside(written.value, domain)
    if reason is not None:
        hint = None
        if isinstance(written.value, str) and domain.options is not None:
            hint = report.did_you_mean(written.value, [str(option) for option in domain.options])
        report.error(written.span, "literal-not-an-option", f"{name}: {reason}", hint=hint)


def check_gates(model: Model) -> None:
    for node in model.nodes.values():
        if not node.gates:
            continue
        for gate in node.gates.values():
            written = gate.written
            if written is not None and not written.broken and not isinstance(written.value, bool):
                model.report.error(
                    written.span,
                    "gate-not-boolean",
                    f"`{node.id}.{gate.name}` takes `true`, `false` or a wire",
                )
        if len(node.gates) > 1:
            first, second = node.gates.values()
            assert first.span is not None and second.span is not None
            model.report.error(
                second.span,
                "two-gates",
                f"`{node.id}` has two gates: `{first.name}` on line {model.report.line(first.span)} "
                f"and `{second.name}` on line {model.report.line(second.span)}",
                hint=f"keep `{FLOW_GATE}` or `{NO_FLOW_GATE}`",
            )


def check_nulls(model: Model) -> None:
    for node in model.nodes.values():
        for port in node.inputs.values():
            written = port.written
            if written is not None and written.value is None and not written.broken and not port.takes_null():
                model.report.warning(
                    written.span,
                    "config-null-literal",
                    f"`{node.id}.{port.name}` is {port.type}: null is no value of it and leaves it unset",
                    hint="leave the key out",
                )
