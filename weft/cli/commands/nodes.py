"""`weft nodes` and `weft describe-nodes`: the node types that programs of the current project can use."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from pathlib import Path

from weft.cli.commands.check import show_broken_nodes
from weft.cli.lines import columns
from weft.cli.output import Output
from weft.cli.shell import COMPLETED
from weft.errors import NodeFileError, NotFound
from weft.lang.diagnostics import nearest
from weft.lang.graph import MISSING
from weft.lang.metadata import InputSpec, NodeSpec
from weft.nodes.reading.describe import describe as describe_spec
from weft.nodes.registry import Registry
from weft.service.projects import LoadedProject, load_project


def nodes(json: bool) -> int:
    out = Output(json=json)
    loaded = load_project(Path())
    specs = [spec for spec in _specs(loaded.registry, ()) if not spec.hidden]
    if json:
        for spec in specs:
            file = loaded.registry.file_of(spec.type)
            out.value(
                {
                    "type": spec.type,
                    "label": spec.label,
                    "description": spec.description,
                    "project": file is not None and file.is_relative_to(loaded.project.root),
                    "file": None if file is None else str(file),
                }
            )
    else:
        for line in columns([[spec.type, _first_line(spec.description), _ports(spec)] for spec in specs]):
            out.line(line)
    return _end(loaded, out)


def describe(types: Sequence[str], json: bool) -> int:
    out = Output(json=json)
    loaded = load_project(Path())
    specs = _specs(loaded.registry, types)
    for spec in specs:
        described = describe_spec(spec)
        if json:
            out.value(described)
        else:
            out.line(jsonlib.dumps(described, ensure_ascii=False, indent=2))
    return _end(loaded, out)


def _specs(registry: Registry, types: Sequence[str]) -> list[NodeSpec]:
    names = registry.names()
    for name in types:
        if name not in names:
            close = nearest(name, names)
            raise NotFound(
                f"there is no node type {name}" + (f"; did you mean {close}?" if close else ""),
                hint="weft nodes lists them.",
            )
    found = [registry.spec(name) for name in types or names]
    return [spec for spec in found if spec is not None]


def _end(loaded: LoadedProject, out: Output) -> int:
    """What could not be loaded is said last, and is an error: a type may be missing from the list."""
    out.flush()
    show_broken_nodes(loaded, out, to_stdout=False)
    return NodeFileError.exit_status if loaded.registry.problems else COMPLETED


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _ports(spec: NodeSpec) -> str:
    """`text: String!, limit: Number = 3 → value: String`; `…` where a program may add ports."""
    inputs = [_input(port) for port in spec.inputs] + ["…"] * (spec.created_inputs is not None)
    outputs = [f"{port.name}: {port.type}" for port in spec.outputs]
    outputs += ["…"] * (spec.created_outputs or spec.ports_from_config is not None)
    return f"{', '.join(inputs)} → {', '.join(outputs)}".strip()


def _input(port: InputSpec) -> str:
    default = "" if port.default is MISSING else f" = {jsonlib.dumps(port.default, ensure_ascii=False)}"
    return f"{port.name}: {port.type}{'!' if port.required else ''}{default}"
