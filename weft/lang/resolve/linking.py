"""Joins what was assigned to the ports it names: values, wires, and the inputs that either creates."""

from __future__ import annotations

from weft.lang.graph import GATES
from weft.lang.resolve.collecting import Declaration
from weft.lang.resolve.literals import Literals
from weft.lang.resolve.model import UNKNOWN, Assignment, Input, Link, Misplaced, Model, Node, Written
from weft.lang.resolve.ports import GATE_SPECS, Ports, add_one_of, order_created
from weft.lang.syntax import Inline, InstanceFilled, Name, Wire


def link(model: Model, declarations: list[Declaration], ports: Ports, literals: Literals) -> None:
    """Give every node its ports and its values, then every wire its two ends."""
    linker = _Linker(model, ports, literals)
    for declaration in declarations:
        linker.fill(declaration)
    for node in model.nodes.values():
        if node.spec is None:
            linker.into_unknown(node)
    for made in model.homeless:
        linker.wire(made, None, None)
    model.links.sort(key=lambda each: each.span.start)
    for each in model.links:
        _find_source(model, each)


def _find_source(model: Model, each: Link) -> None:
    each.source = source = model.nodes.get(each.source_name.text)
    if source is not None:
        each.output = output = source.outputs.get(each.source_port.text)
        if output is not None:
            output.wired = True


class _Linker:
    def __init__(self, model: Model, ports: Ports, literals: Literals) -> None:
        self._model = model
        self._ports = ports
        self._literals = literals

    def fill(self, declaration: Declaration) -> None:
        node = declaration.node
        if node.spec is None:
            return
        config = node.spec.ports_from_config
        values: dict[int, Written] = {}
        listed: Written | None = None
        for made in node.assignments:
            if isinstance(made.value, InstanceFilled):
                # The parser has refused it; here it only keeps its place filled.
                values[id(made)] = Written(made.value, None, made.value.span, UNKNOWN, broken=True)
            elif not isinstance(made.value, Wire | Inline):
                values[id(made)] = written = self._literals.written(made.value)
                if config is not None and made.port.text == config.field:
                    listed = listed or written
        self._ports.give(node, declaration.signature, listed)
        for group in declaration.one_of:
            if group.span is not None:
                add_one_of(node, group.ports, group.span)
        created = any(port.created for port in node.inputs.values())
        for made in node.assignments:
            before = len(node.inputs)
            self._assign(node, made, values.get(id(made)))
            created = created or len(node.inputs) > before
        if created:
            order_created(node)

    def _assign(self, node: Node, made: Assignment, written: Written | None) -> None:
        port = self._port(node, made, written)
        if isinstance(made.value, Wire | Inline):
            self.wire(made, node, port)
        elif port is not None:
            port.written = written

    def _port(self, node: Node, made: Assignment, written: Written | None) -> Input | None:
        """The input that is meant: one that is there, a gate, or one that is created now. Else None."""
        name = made.port.text
        known = node.inputs.get(name)
        if known is None and name in GATES:
            known = node.gates.get(name)
            if known is None:
                spec = GATE_SPECS[name]
                known = node.gates[name] = Input(name, spec, spec.type, required=False, span=made.port.span)
        if known is not None:
            if made.optional and not (known.created and known.span == made.port.span):
                self._model.report.error(
                    made.port.span,
                    "enrich",
                    f"`{name}` is an input that `{node.id}` has already: `?` can only mark one that is created here",
                    hint=f"write `{name}: …`" + ("" if name in GATES else f", or declare `{name}?` in the header"),
                )
            return known
        assert node.spec is not None
        if node.spec.created_inputs is None or name in node.outputs:
            if not isinstance(made.value, Wire | Inline):
                self._model.misplaced.append(Misplaced(node, made))
            return None
        return self._ports.create(node, made, written)

    def wire(self, made: Assignment, target: Node | None, port: Input | None) -> None:
        value = made.value
        if isinstance(value, Wire):
            each = Link(value.node, value.port, value.keys, made.node, made.port, made.span)
        else:
            assert isinstance(value, Inline)
            host = Name(f"{made.node.text}__{made.port.text}", value.type.span)
            each = Link(host, value.port, [], made.node, made.port, made.span)
        each.target, each.input = target, port
        if port is not None:
            if port.wire is None:
                port.wire = each
            elif _same_wire(port.wire, each):
                return
            else:
                self._model.doubled_links.append((port.wire, each))
        self._model.links.append(each)

    def into_unknown(self, node: Node) -> None:
        for made in node.assignments:
            if isinstance(made.value, Wire | Inline):
                self.wire(made, node, None)


def _same_wire(a: Link, b: Link) -> bool:
    def end(each: Link) -> tuple[str, ...]:
        return (each.source_name.text, each.source_port.text, *(key.text for key in each.keys))

    return end(a) == end(b)
