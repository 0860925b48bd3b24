"""Wires between types that do not fit, and types that nothing determines."""

from __future__ import annotations

from collections.abc import Iterator

from weft.lang.resolve.model import Input, Link, Model, Node, Output, Report, holds_unknown
from weft.lang.resolve.variables import holds_must_override
from weft.lang.types import Type, Variable, assignable, is_open, walk
from weft.lang.values import cast_allowed


def check_types(model: Model) -> None:
    told = [link for link in model.links if link.keys or link.second()]
    for link in model.links:
        if link.output is not None and link.input is not None and not link.keys and not link.second():
            source, target = link.output.type, link.input.type
            if source is not target and link.input.takes_wire() and not _fits(source, target):
                _mismatch(model.report, link, source, target)
                told.append(link)
    _undetermined(model, told)
    for node in model.nodes.values():
        if node.spec is not None and node.spec.cast_ports:
            _cast(model.report, node)


def _fits(source: Type, target: Type) -> bool:
    return assignable(source, target) or holds_unknown(source) or holds_unknown(target)


def _mismatch(report: Report, link: Link, source: Type, target: Type) -> None:
    given = f"{link.source_name.text}.{link.source_port.text}"
    taken = f"{link.target_name.text}.{link.target_port.text}"
    hint = None
    if cast_allowed(source, target) and not is_open(target):
        # A node written in place of the value has no name to wire from once the Cast stands there.
        value = "…" if "__" in link.source_name.text else given
        hint = f"put a Cast between them: `{taken} = Cast -> (value: {target}) {{ value: {value} }}.value`"
    message = f"`{given}` is {source}, but `{taken}` takes {target}"
    report.error(link.span, "type-mismatch", message, hint=hint)


def _connected(node: Node) -> Iterator[Input | Output]:
    for port in node.inputs.values():
        if port.open and port.wire is not None:
            yield port
    for output in node.outputs.values():
        if output.open and output.wired:
            yield output


def _undetermined(model: Model, told_links: list[Link]) -> None:
    """Open types on connected ports. Ports that are open for one reason are reported once, at the first.

    What hangs on a wire that was reported already is open for that reason.
    """
    if not any(port.open for node in model.nodes.values() for port in _connected(node)):
        return
    told: set[tuple[str, str]] = set()
    open_links = _open_links(model)
    for link in told_links:
        for end, port in ((link.source, link.output), (link.target, link.input)):
            if end is not None and port is not None:
                for variable in _variables(port.type):
                    _mark(end.id, variable, open_links, told)
    for node in model.nodes.values():
        for port in _connected(node):
            if holds_must_override(port.type):
                _undeclared(model.report, node, port)
                continue
            variables = _variables(port.type)
            if any((node.id, variable) in told for variable in variables):
                continue
            for variable in variables:
                _mark(node.id, variable, open_links, told)
            model.report.error(
                port.span or node.span,
                "unresolved-typevar",
                f"nothing says what type `{node.id}.{port.name}` has",
                hint=f"declare it in the header of `{node.id}`, as in `{port.name}: String`",
            )


def _undeclared(report: Report, node: Node, port: Input | Output) -> None:
    arrow = "" if isinstance(port, Input) else "-> "
    report.error(
        port.span or node.span,
        "must-override-unmet",
        f"`{node.id}.{port.name}` is wired, but its type is not said",
        hint=f"declare it in the header: `{node.id} = {node.type} {arrow}({port.name}: String)`",
    )


def _variables(type_: Type) -> list[str]:
    return [part.name for part in walk(type_) if isinstance(part, Variable)]


def _open_links(model: Model) -> dict[str, list[Link]]:
    """For each node its wires with an open type at both ends."""
    found: dict[str, list[Link]] = {}
    for link in model.links:
        if link.output is not None and link.input is not None and link.output.open and link.input.open:
            for node in (link.source, link.target):
                if node is not None:
                    found.setdefault(node.id, []).append(link)
    return found


def _mark(id_: str, variable: str, open_links: dict[str, list[Link]], told: set[tuple[str, str]]) -> None:
    """Mark this variable as told, and all that are open because of it."""
    pending = [(id_, variable)]
    while pending:
        here = pending.pop()
        if here in told:
            continue
        told.add(here)
        for link in open_links.get(here[0], ()):
            if link.source is None or link.target is None or link.output is None or link.input is None:
                continue
            ends = [(link.source.id, name) for name in _variables(link.output.type)]
            ends += [(link.target.id, name) for name in _variables(link.input.type)]
            if here in ends:
                pending += ends


def _cast(report: Report, node: Node) -> None:
    for port in node.inputs.values():
        for output in node.outputs.values():
            if port.wire is None or holds_unknown(port.type) or holds_unknown(output.type):
                continue
            if not cast_allowed(port.type, output.type):
                report.error(
                    output.span or node.span,
                    "cast-not-allowed",
                    f"{node.type} cannot make {output.type} of {port.type} (`{node.id}.{port.name}`)",
                    hint="convert it in a node of your own, such as ExecPython",
                )
