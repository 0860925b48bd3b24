"""A node type and a test's inputs to a compiled node, as the compiler would make it for a program around it.

Every given input counts as wired (a literal-only one as written), every output as wired unless the test says
which are. Type variables stay open: a test has no other nodes to bind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.flow.firing import CLOSED
from weft.lang.diagnostics import nearest
from weft.lang.graph import MISSING, InputPort, Node, OutputPort
from weft.lang.metadata import InputSpec, NodeSpec, PortTemplate
from weft.lang.types import AUTO, Type
from weft.lang.values import infer
from weft.nodes.reading.pytypes import language_type


def compiled(
    spec: NodeSpec,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] | Sequence[str] = (),
    wired: Iterable[str] | None = None,
) -> Node:
    """Raises ValueError for what no program could be: an unknown port, a required input without a value."""
    derived_inputs, derived_outputs = _from_config(spec, inputs)
    ports = [_declared(port, inputs) for port in spec.inputs]
    names = {port.name for port in ports}
    for template, name in derived_inputs:
        ports.append(InputPort(name, str(template.type), template.required, wired=name in inputs))
        names.add(name)
    ports += [_created(spec, name, value, names) for name, value in inputs.items() if name not in names]
    _demand_runnable(spec, ports, inputs)
    types = {port.name: str(port.type) for port in spec.outputs}
    types |= {name: str(template.type) for template, name in derived_outputs}
    types |= _named(spec, outputs, types)
    chosen = types.keys() if wired is None else set(wired)
    unknown = next((name for name in chosen if name not in types), None)
    if unknown is not None:
        raise ValueError(f"{spec.type} has no output {unknown}{_meant(unknown, types)}")
    return Node(
        id=spec.type[:1].lower() + spec.type[1:],
        type=spec.type,
        inputs=tuple(ports),
        outputs=tuple(OutputPort(name, type_, name in chosen) for name, type_ in types.items()),
        one_of=spec.one_of_required,
    )


def _declared(port: InputSpec, inputs: Mapping[str, Any]) -> InputPort:
    value = inputs.get(port.name, MISSING)
    written = port.accepts == "literal"
    if written and value is CLOSED:
        raise ValueError(f"{port.name} takes no wire, so none can close on it")
    return InputPort(
        name=port.name,
        type=str(port.type),
        required=port.required,
        required_when_wired=port.required_when_wired,
        wired=value is not MISSING and not written,
        wire_capable=not written,
        literal=value if written else MISSING,
        default=port.default,
        domain=port.domain,
    )


def _created(spec: NodeSpec, name: str, value: Any, known: Iterable[str]) -> InputPort:
    created = spec.created_inputs
    if created is None:
        raise ValueError(f"{spec.type} has no input {name}{_meant(name, known)}")
    type_: Type | None = created.type
    if type_ is None:
        type_ = AUTO if value is CLOSED else infer(value)
    return InputPort(name, str(type_), created.required, wired=True, created=True)


def _demand_runnable(spec: NodeSpec, ports: Sequence[InputPort], inputs: Mapping[str, Any]) -> None:
    for port in ports:
        value = inputs.get(port.name, MISSING)
        if value is CLOSED and (port.required or port.required_when_wired):
            raise ValueError(f"{port.name} closed: {spec.type} would be skipped, and its body not run")
        if value is MISSING and port.required:
            raise ValueError(f"the required input {port.name} of {spec.type} has no value")
    for group in spec.one_of_required:
        if all(inputs.get(name, CLOSED) is CLOSED for name in group):
            raise ValueError(f"{spec.type} needs one of {', '.join(group)}")


def _named(spec: NodeSpec, outputs: Mapping[str, Any] | Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """The outputs of a test's own header, by name, each with its type (any, where the test names none)."""
    named: dict[str, str] = {}
    for name in outputs:
        if name not in known and not spec.created_outputs:
            raise ValueError(f"{spec.type} has no output {name}{_meant(name, known)}")
        annotation = outputs[name] if isinstance(outputs, Mapping) else Any
        named[name] = annotation if isinstance(annotation, str) else str(language_type(annotation))
    return named


Derived = list[tuple[PortTemplate, str]]


def _from_config(spec: NodeSpec, inputs: Mapping[str, Any]) -> tuple[Derived, Derived]:
    """The inputs and outputs that the entries of a written list add."""
    config = spec.ports_from_config
    entries = [] if config is None else inputs.get(config.field)
    if config is None or not isinstance(entries, list):
        return [], []
    kinds = {kind.kind: kind for kind in config.kinds}
    added: tuple[Derived, Derived] = ([], [])
    for entry in entries:
        kind = kinds.get(entry.get("kind"))
        if kind is None:
            raise ValueError(f"{spec.type} has no entry of the kind {entry.get('kind')!r}")
        for side, templates in zip(added, (kind.adds_inputs, kind.adds_outputs), strict=True):
            side += [(each, each.name_template.replace("{key}", entry[kind.key_field])) for each in templates]
    return added


def _meant(name: str, known: Iterable[str]) -> str:
    likely = nearest(name, known)
    return "" if likely is None else f"; did you mean {likely}?"
