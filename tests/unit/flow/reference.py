"""The skip table and the closure rules once more, written from the design in the simplest way, without any order.

Slow and whole: it settles a loop-free program node by node and knows nothing of events or of the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from weft.flow.selection import Selected
from weft.lang.graph import GATES, MISSING, Node, Program


@dataclass
class Closure:
    failure: str | None
    """The node in which the failure began."""


@dataclass
class Ended:
    status: str
    bag: dict[str, Any]
    sent: dict[str, Any]
    """Each output with its value or a `Closure`."""


Scripts = dict[str, Callable[[dict[str, Any]], Iterable[tuple[str, Any]]]]


def settle(program: Program, scripts: Scripts, selected: Selected) -> dict[str, Ended]:
    ended: dict[str, Ended] = {}
    left = [node for node in program.nodes if node.id in selected.nodes]
    while left:
        for node in left:
            arrived = _arrived(program, node, selected, ended)
            if arrived is not None:
                ended[node.id] = _fire(node, arrived, selected, scripts[node.id])
        left = [node for node in left if node.id not in ended]
    return ended


def _arrived(program: Program, node: Node, selected: Selected, ended: dict[str, Ended]) -> dict[str, Any] | None:
    """What came on each wired input, or None while a wire is silent."""
    arrived: dict[str, Any] = {}
    for edge in program.edges:
        if edge.target != node.id:
            continue
        if edge.source in selected.emitted:
            came = selected.emitted[edge.source].get(edge.source_port, Closure(None))
        elif edge.source not in selected.nodes:
            came = Closure(None)
        elif edge.source in ended:
            came = ended[edge.source].sent[edge.source_port]
        else:
            return None
        by_hand = selected.handed.get(node.id, {})
        if isinstance(came, Closure) and edge.target_port in by_hand:
            came = by_hand[edge.target_port]
        arrived[edge.target_port] = came
    return arrived


def _fire(node: Node, arrived: dict[str, Any], selected: Selected, script: Any) -> Ended:
    by_hand = selected.handed.get(node.id, {})
    bag: dict[str, Any] = {}
    for port in node.inputs:
        if port.name in arrived:
            if not isinstance(arrived[port.name], Closure):
                bag[port.name] = arrived[port.name]
        elif port.name in by_hand:
            bag[port.name] = by_hand[port.name]
        elif port.literal is not MISSING:
            bag[port.name] = port.literal
        elif port.default is not MISSING:
            bag[port.name] = port.default
    for gate in GATES:
        if gate in by_hand and gate not in arrived:
            bag[gate] = by_hand[gate]
    closed = {name: came for name, came in arrived.items() if isinstance(came, Closure)}
    inputs = {name: value for name, value in bag.items() if name not in GATES}
    skip = _skip(node, bag, closed, by_hand)
    if skip is not None:
        reason, failure = skip
        return Ended(f"skipped: {reason}", inputs, {port.name: Closure(failure) for port in node.outputs})
    sent: dict[str, Any] = {}
    status, failure = "completed", None
    for what, detail in script(inputs):
        if what == "emit":
            sent.update(detail)
        elif what == "close":
            sent[detail] = Closure(None)
        elif what == "fail":
            status, failure = "failed", node.id
        elif what == "skip":
            status = "skipped: wait_skipped"
    for port in node.outputs:
        sent.setdefault(port.name, Closure(failure))
    return Ended(status, inputs, sent)


def _skip(
    node: Node, bag: dict[str, Any], closed: dict[str, Closure], by_hand: dict[str, Any]
) -> tuple[str, str | None] | None:
    flow, no_flow = GATES
    if flow in closed:  # 0a
        return "flow_closed", closed[flow].failure
    if flow in bag and bag[flow] is False:  # 0b
        return "did_not_flow", None
    if no_flow in closed and closed[no_flow].failure:  # 0d (0c goes on)
        return "watched_node_failed", closed[no_flow].failure
    if no_flow in bag and bag[no_flow] is not False:  # 0e
        return "did_flow", None

    def failure_of(names: Iterable[str]) -> str | None:
        failures = [closed[name].failure for name in names if name in closed]
        return next((failure for failure in failures if failure), None)

    ports = [port for port in node.inputs if port.name not in GATES]
    required = [port.name for port in ports if port.required or port.required_when_wired]
    if any(name in closed for name in required):  # 1
        return "required_input_closed", failure_of(required)
    capable = [port.name for port in ports if port.wire_capable]
    if capable and all(name not in bag for name in capable):  # 2
        return "every_input_closed", failure_of(capable)

    def dead(name: str) -> bool:
        (port,) = [port for port in ports if port.name == name]
        if port.wired:
            return name in closed
        return port.literal is MISSING and name not in by_hand

    groups = [group for group in node.one_of if all(dead(name) for name in group)]
    if groups:  # 3
        return "one_of_group_closed", failure_of(name for group in groups for name in group)
    return None
