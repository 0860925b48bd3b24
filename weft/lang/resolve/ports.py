"""How a node gets its ports: from its type, from a written list, from its header, and those that values create."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from weft.lang.diagnostics import Span
from weft.lang.graph import GATES
from weft.lang.metadata import InputSpec, NodeSpec
from weft.lang.resolve.entries import add_ports, fresh_variable, own_variable
from weft.lang.resolve.literals import Literals, inferred
from weft.lang.resolve.model import (
    UNKNOWN,
    Assignment,
    Input,
    Node,
    OneOfGroup,
    Output,
    Report,
    Written,
)
from weft.lang.resolve.typenames import TypeNames
from weft.lang.resolve.variables import Conflict, narrow
from weft.lang.syntax import PortDecl, Scalar, Signature
from weft.lang.types import MUST_OVERRIDE, Type, assignable, is_open

GATE_SPECS = {name: InputSpec(name, fresh_variable(name)) for name in GATES}


class NodeTemplate:
    """The ports that every node of one type starts with, prepared once."""

    def __init__(self, spec: NodeSpec) -> None:
        self.spec = spec
        self.inputs = [(port, own_variable(port.type, f"in {port.name}"), is_open(port.type)) for port in spec.inputs]
        self.outputs = [
            (port.name, own_variable(port.type, f"out {port.name}"), is_open(port.type)) for port in spec.outputs
        ]

    def give_ports(self, node: Node) -> None:
        node.inputs = {
            spec.name: Input(spec.name, spec, type_, spec.required, open_) for spec, type_, open_ in self.inputs
        }
        node.outputs = {name: Output(name, type_, open_) for name, type_, open_ in self.outputs}
        node.one_of = [OneOfGroup(tuple(group), None) for group in self.spec.one_of_required]


class Ports:
    """Gives the nodes of one file their ports. Mistakes in headers are reported as `enrich`."""

    def __init__(self, report: Report, names: TypeNames, literals: Literals) -> None:
        self._report = report
        self._names = names
        self._literals = literals
        self._templates: dict[str, NodeTemplate] = {}

    def give(self, node: Node, signature: Signature | None, list_value: Written | None) -> None:
        """Ports from the type, from the list that `list_value` is, and from the header, in this order."""
        spec = node.spec
        assert spec is not None
        template = self._templates.get(node.type)
        if template is None:
            template = self._templates[node.type] = NodeTemplate(spec)
        template.give_ports(node)
        derived: set[str] = set()
        if spec.ports_from_config is not None and list_value is not None:
            add_ports(node, spec.ports_from_config, list_value)
            derived = {*node.inputs, *node.outputs}
            derived -= {port.name for port in spec.inputs} | {port.name for port in spec.outputs}
        if signature is not None:
            for declared in _once(node, signature.inputs):
                self._header_input(node, spec, declared, derived)
            for declared in _once(node, signature.outputs):
                self._header_output(node, spec, declared, derived)
            for group in signature.one_of:
                add_one_of(node, tuple(name.text for name in group.ports), group.span)

    # --- the header ---------------------------------------------------------------------------------------

    def _header_input(self, node: Node, spec: NodeSpec, declared: PortDecl, derived: set[str]) -> None:
        name = declared.name.text
        known = node.inputs.get(name)
        if name in GATES:
            self._refuse(declared.name.span, f"`{name}` is a gate of every node", "leave it out of the header")
            return
        if known is None or known.created:
            self._new_input(node, spec, declared)
            return
        if known.spec.compiler_read:
            self._refuse(
                declared.name.span,
                f"`{name}` of {spec.type} is read by the compiler and cannot be declared in a header",
                f"write its value in the braces: `{name}: …`",
            )
            return
        if known.spec.required_when_wired and not declared.optional:
            self._refuse(
                declared.name.span,
                f"`{name}` of {spec.type} is required only when it is wired",
                f"write `{name}?` in the header",
            )
            return
        known.required = not declared.optional
        known.span = declared.name.span
        if declared.type is not None:
            known.type = self._narrowed(node, known.type, declared, name in derived)
            known.open = is_open(known.type)

    def _new_input(self, node: Node, spec: NodeSpec, declared: PortDecl) -> None:
        name, span = declared.name.text, declared.name.span
        created = spec.created_inputs
        if created is None:
            hint = self._report.did_you_mean(name, node.inputs)
            message = f"{spec.type} has no input `{name}` and takes no inputs of your own"
            self._refuse(span, message, hint or _list_ports("its inputs are", node.inputs))
        type_: Type = UNKNOWN
        if declared.type is not None:
            type_ = self._names.read(declared.type)
        elif created is not None:
            self._untyped(declared, f"{name}: String")
        wanted = None if created is None else created.type
        if wanted is not None and type_ is not UNKNOWN and not assignable(type_, wanted):
            self._refuse(span, f"inputs of your own on {spec.type} are {wanted}, not {type_}", None)
        self._add_input(node, name, type_, not declared.optional, span)

    def _header_output(self, node: Node, spec: NodeSpec, declared: PortDecl, derived: set[str]) -> None:
        name, span = declared.name.text, declared.name.span
        known = node.outputs.get(name)
        if known is not None:
            if known.span is None or name in derived:
                known.span = span
                if declared.type is not None:
                    known.type = self._narrowed(node, known.type, declared, name in derived)
                    known.open = is_open(known.type)
            return
        if not spec.created_outputs:
            hint = self._report.did_you_mean(name, node.outputs)
            message = f"{spec.type} has no output `{name}` and takes no outputs of your own"
            self._refuse(span, message, hint or _list_ports("its outputs are", node.outputs))
        type_: Type = UNKNOWN
        if declared.type is not None:
            type_ = self._names.read(declared.type)
        elif spec.created_outputs:
            self._untyped(declared, f"{name}: String")
        node.outputs[name] = Output(name, type_, is_open(type_), span=span)

    def _narrowed(self, node: Node, known: Type, declared: PortDecl, derived: bool) -> Type:
        assert declared.type is not None
        wanted = self._names.read(declared.type)
        if wanted is UNKNOWN or wanted == MUST_OVERRIDE:
            return wanted if wanted is UNKNOWN else known
        name = declared.name.text
        if derived:
            if wanted != known:
                self._refuse(declared.name.span, f"the list makes `{name}` a {known}, not a {wanted}", None)
            return known
        if wanted != known and is_open(wanted) and is_open(known) and known != MUST_OVERRIDE:
            self._refuse(
                declared.name.span,
                f"`{name}` of {node.type} is {known}: the header can only make it a type without variables",
                None,
            )
            return known
        if not assignable(wanted, known):
            self._refuse(
                declared.name.span,
                f"`{name}` of {node.type} is {known}: the header cannot make it {wanted}",
                "a header may only narrow a type",
            )
            return known
        try:
            narrow(node, known, wanted)
        except Conflict as conflict:
            self._refuse(
                declared.name.span,
                f"`{name}` makes `{conflict.variable}` of {node.type} {conflict.second}, "
                f"but another port of the header made it {conflict.first}",
                "ports that share a variable have one type",
            )
            return UNKNOWN
        return wanted

    def _untyped(self, declared: PortDecl, example: str) -> None:
        self._refuse(declared.name.span, f"the new port `{declared.name.text}` needs a type", f"as in `{example}`")

    # --- ports that a value or a wire creates -------------------------------------------------------------

    def create(self, node: Node, made: Assignment, written: Written | None) -> Input | None:
        """The input that this assignment creates, or None where it may create none (which is reported)."""
        assert node.spec is not None and node.spec.created_inputs is not None
        creates, name = node.spec.created_inputs, made.port.text
        if isinstance(made.value, Scalar) and made.value.value is None:
            message = f"null cannot create the input `{name}`: it has no type to give it"
            self._refuse(made.value.span, message, f"declare it in the header, as in `{name}?: String`")
            return None
        if creates.type is not None:
            type_ = own_variable(creates.type, f"in {name}")
        elif written is not None:
            type_ = inferred(written)
        else:
            type_ = fresh_variable(f"in {name}")
        required = creates.required and not made.optional
        return self._add_input(node, name, type_, required, made.port.span)

    def _add_input(self, node: Node, name: str, type_: Type, required: bool, span: Span) -> Input:
        port = Input(name, InputSpec(name, type_, required), type_, required, is_open(type_), True, span)
        node.inputs[name] = port
        return port

    def _refuse(self, span: Span, message: str, hint: str | None) -> None:
        self._report.error(span, "enrich", message, hint=hint)


def _once(node: Node, declared: list[PortDecl]) -> Iterator[PortDecl]:
    """The ports of one side of a header; a name that stands there again is noted and left out."""
    seen: set[str] = set()
    for port in declared:
        if port.name.text in seen:
            node.repeated_ports.append((port.name.text, port.name.span))
        else:
            seen.add(port.name.text)
            yield port


def add_one_of(node: Node, ports: tuple[str, ...], span: Span) -> None:
    """A group that the program asks for; one that the type asks for already is no second one."""
    if not any(set(group.ports) == set(ports) for group in node.one_of):
        node.one_of.append(OneOfGroup(ports, span))


def order_created(node: Node) -> None:
    """Created inputs stand in written order (line, then column), after those of the type."""
    made = [(port.span.start, port) for port in node.inputs.values() if port.created and port.span is not None]
    if any(one[0] > other[0] for one, other in pairwise(made)):
        made.sort(key=lambda each: each[0])
        fixed = {name: port for name, port in node.inputs.items() if not port.created}
        node.inputs = fixed | {port.name: port for _, port in made}


def _list_ports(what: str, ports: dict[str, Input] | dict[str, Output]) -> str | None:
    return f"{what} {', '.join(f'`{name}`' for name in ports)}" if ports else None
