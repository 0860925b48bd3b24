"""Which part of a program a run covers, and what it is given by hand.

`--target` and `--before` say where the run ends, `--from` where it starts and with which values, `--emit`
which nodes do not run because their emissions are given. What cannot run by itself is refused here, before a
run exists. Values are not checked against types here; that happens where they arrive.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import SelectionRefused
from weft.lang.graph import FLOW_GATE, GATES, MISSING, Edge, InputPort, Node, Program

Values = dict[str, dict[str, Any]]
"""Values by node, then port."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a person chose; all empty is the whole program."""

    targets: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    from_values: Values = field(default_factory=dict)
    emits: Values = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Without what is empty."""
        parts = {
            "targets": list(self.targets),
            "before": list(self.before),
            "from": self.from_values,
            "emit": self.emits,
        }
        return {name: part for name, part in parts.items() if part}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Selection:
        return cls(
            tuple(data.get("targets", ())),
            tuple(data.get("before", ())),
            dict(data.get("from", {})),
            dict(data.get("emit", {})),
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """The run's nodes in source order, values handed to inputs, emissions of nodes that do not run."""

    nodes: tuple[str, ...]
    handed: Values
    emitted: Values

    def supply(self, edge: Edge) -> Any:
        """What a wire from outside the run delivers: an emission, else a handed value, else MISSING."""
        value = self.emitted.get(edge.source, {}).get(edge.source_port, MISSING)
        if value is MISSING:
            value = self.handed.get(edge.target, {}).get(edge.target_port, MISSING)
        return value


def select(program: Program, selection: Selection) -> Selected:
    """The part of the program that the selection names. SelectionRefused where it cannot run by itself."""
    chooser = _Chooser(program, selection)
    chosen = chooser.choose()
    selected = Selected(
        tuple(node.id for node in program.nodes if node.id in chosen), selection.from_values, selection.emits
    )
    chooser.check_supply(selected)
    return selected


class _Chooser:
    def __init__(self, program: Program, selection: Selection) -> None:
        self.selection = selection
        self.nodes = {node.id: node for node in program.nodes}
        self.feeders: dict[str, list[str]] = {}
        self.readers: dict[str, list[str]] = {}
        self.incoming: dict[str, dict[str, Edge]] = {}
        for edge in program.edges:
            self.feeders.setdefault(edge.target, []).append(edge.source)
            self.readers.setdefault(edge.source, []).append(edge.target)
            self.incoming.setdefault(edge.target, {})[edge.target_port] = edge

    def choose(self) -> set[str]:
        self._check_names()
        selection = self.selection
        ends = selection.targets or selection.before
        chosen = self._downstream() if selection.from_values else set(self.nodes) - selection.emits.keys()
        if not ends:
            return chosen
        needed = self._needed()
        if selection.from_values:
            for target in selection.targets:
                if target not in chosen:
                    starts = _listed(selection.from_values)
                    raise SelectionRefused(
                        f"{target} is not downstream of {starts}, so a run from there never reaches it",
                        hint=f"Leave out --target {target}, or start from a node that leads to it.",
                    )
            for start in selection.from_values:
                if start not in needed:
                    raise SelectionRefused(
                        f"{start} does not lead to {_listed(ends)}, so a run from there would go nowhere",
                        hint=f"Leave out --from {start}, or choose an end that is downstream of it.",
                    )
        chosen &= needed
        if not chosen:
            raise SelectionRefused(
                f"nothing is left to run before {_listed(ends)}",
                hint="Choose a node that something feeds, or use --target to run the node itself.",
            )
        return chosen

    def _needed(self) -> set[str]:
        """The ends and what feeds them, without `before` nodes; a node of `--emit` needs nothing."""
        selection = self.selection
        stops = selection.emits.keys() | set(selection.before)
        roots = [*selection.targets]
        for node in selection.before:
            roots += self.feeders.get(node, ())
        return _reach(roots, self.feeders, stops)

    def _downstream(self) -> set[str]:
        """The starts and all that follows, past nodes whose emissions are given too, but without these."""
        return _reach(self.selection.from_values, self.readers, ()) - self.selection.emits.keys()

    # --- names --------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        selection = self.selection
        for flag, names in (
            ("--target", selection.targets),
            ("--before", selection.before),
            ("--from", selection.from_values),
            ("--emit", selection.emits),
        ):
            for name in names:
                if name not in self.nodes:
                    raise SelectionRefused(
                        f"{flag} {name}: the program has no node {name}", hint=_suggest(name, self.nodes)
                    )
        for name in selection.emits:
            for flag, names in (("--target", selection.targets), ("--from", selection.from_values)):
                if name in names:
                    raise SelectionRefused(
                        f"{name} stands both in {flag} and in --emit, but a node whose emissions are "
                        "given does not run",
                        hint=f"Leave it out of one of them; --before {name} runs what feeds it.",
                    )
        for name in selection.targets:
            if name in selection.before:
                raise SelectionRefused(
                    f"{name} stands both in --target and in --before",
                    hint=f"--target {name} runs it, --before {name} runs only what feeds it.",
                )
        for name, values in selection.from_values.items():
            node = self.nodes[name]
            self._check_ports("--from", node, values, [*(port.name for port in node.inputs), *GATES], "input")
        for name, values in selection.emits.items():
            node = self.nodes[name]
            self._check_ports("--emit", node, values, [port.name for port in node.outputs], "output")

    def _check_ports(self, flag: str, node: Node, values: Mapping[str, Any], known: list[str], side: str) -> None:
        for port in values:
            if port not in known:
                raise SelectionRefused(f"{flag} {node.id}: {node.id} has no {side} {port}", hint=_suggest(port, known))

    # --- supply -------------------------------------------------------------------------------------------

    def check_supply(self, selected: Selected) -> None:
        """Refuse a node that is certain never to run because what it needs is outside the run."""
        chosen = frozenset(selected.nodes)
        for name in selected.nodes:
            node = self.nodes[name]
            cut = self._cut(name, chosen)
            for port in node.inputs:
                edge = cut.get(port.name)
                if edge and (port.required or port.required_when_wired or port.name == FLOW_GATE):
                    raise self._unsupplied(edge)
            for group in node.one_of:
                dead = [port for port in node.inputs if port.name in group and self._dead(name, port, cut)]
                lost = [cut[port.name] for port in dead if port.name in cut]
                if lost and len(dead) == len(group):
                    raise self._unsupplied(lost[0], among=f" (one of {', '.join(group)})")
            if name in self.selection.from_values:
                self._check_start(node, cut)

    def _cut(self, name: str, chosen: frozenset[str]) -> dict[str, Edge]:
        """The node's wires on which nothing will come: nobody in this run speaks for the source."""
        handed = self.selection.from_values.get(name, {})
        return {
            port: edge
            for port, edge in self.incoming.get(name, {}).items()
            if edge.source not in chosen and edge.source not in self.selection.emits and port not in handed
        }

    def _dead(self, name: str, port: InputPort, cut: Mapping[str, Edge]) -> bool:
        if port.name in self.incoming.get(name, {}):
            return port.name in cut
        return port.literal is MISSING and port.name not in self.selection.from_values.get(name, {})

    def _check_start(self, node: Node, cut: Mapping[str, Edge]) -> None:
        ports = [port for port in node.inputs if port.wire_capable and port.name not in GATES]
        dead = [port for port in ports if self._dead(node.id, port, cut) and port.default is MISSING]
        lost = [cut[port.name] for port in dead if port.name in cut]
        if lost and len(dead) == len(ports):
            raise self._unsupplied(lost[0])

    def _unsupplied(self, edge: Edge, among: str = "") -> SelectionRefused:
        left_out = " by --before" if edge.source in self.selection.before else ""
        return SelectionRefused(
            f"{edge.target} needs a value on {edge.target_port}{among}, "
            f"but {edge.source}, which feeds it, is left out of this run{left_out}",
            hint=f"Hand it over with --from {_flag(edge.target, edge.target_port)}, "
            f"or say what {edge.source} gives with --emit {_flag(edge.source, edge.source_port)}.",
        )


def _reach(roots: Iterable[str], onward: Mapping[str, list[str]], stops: Iterable[str]) -> set[str]:
    """The roots and all that follows from them, never through (or counting) a stop."""
    closed = frozenset(stops)
    reached: set[str] = set()
    pending = [root for root in roots if root not in closed]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += (other for other in onward.get(name, ()) if other not in closed)
    return reached


def _flag(node: str, port: str) -> str:
    return f"{node}='{{{json.dumps(port)}: …}}'"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _suggest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"Did you mean {near[0]}?"
    if not names:
        return "It has none."
    shown = names[:10]
    return f"There are: {', '.join(shown)}{', …' if len(names) > len(shown) else ''}."
