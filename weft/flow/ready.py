"""Which firings are due, and whether a firing whose wires have all settled starts or is skipped: the skip
table.

Pure judgement on what came; nothing here changes a firing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weft.flow.events import Frames
from weft.lang.graph import FLOW_GATE, MISSING, NO_FLOW_GATE

if TYPE_CHECKING:
    from weft.flow.firing import Failure, Firing
    from weft.flow.plan import NodePlan

FLOW_CLOSED: Final = "flow_closed"
DID_NOT_FLOW: Final = "did_not_flow"
WATCHED_NODE_FAILED: Final = "watched_node_failed"
DID_FLOW: Final = "did_flow"
REQUIRED_INPUT_CLOSED: Final = "required_input_closed"
EVERY_INPUT_CLOSED: Final = "every_input_closed"
ONE_OF_GROUP_CLOSED: Final = "one_of_group_closed"
WAIT_SKIPPED: Final = "wait_skipped"


@dataclass(slots=True)
class Kick:
    """No wire of this run leads to the node: it is to be kicked."""

    node: str
    frames: Frames


@dataclass(slots=True)
class Start:
    node: str
    frames: Frames


@dataclass(slots=True)
class Skip:
    """`failure` is what the skip passes on: None where it was a decision, or where nothing failed."""

    node: str
    frames: Frames
    reason: str
    failure: Failure | None = None


@dataclass(slots=True)
class Resume:
    """What the firing was parked on is over; `token` is that of the wait whose end decided."""

    node: str
    frames: Frames
    token: str


Due = Kick | Start | Skip | Resume


def decide(
    node: NodePlan, values: Mapping[str, Any], closed: Mapping[str, Failure | None]
) -> tuple[str, Failure | None] | None:
    """Why the firing is skipped and the failure it passes on, or None: it starts.

    `values` and `closed` are what came over its wires, once all have settled. The rules stand in the order of
    the language's skip table; the first that holds decides.
    """
    given = node.given
    if node.flow_gate:
        if FLOW_GATE in closed:
            return FLOW_CLOSED, closed[FLOW_GATE]
        if _value(FLOW_GATE, values, given) is False:
            return DID_NOT_FLOW, None
    if node.no_flow_gate:
        if NO_FLOW_GATE in closed:
            failure = closed[NO_FLOW_GATE]
            if failure is not None:
                return WATCHED_NODE_FAILED, failure
        elif _value(NO_FLOW_GATE, values, given) is not False:
            return DID_FLOW, None
    causes = [port for port in node.needed if port in closed]
    if causes:
        return REQUIRED_INPUT_CLOSED, _failure(causes, closed)
    capable = node.capable
    if capable and not any(port in values or port in given for port in capable):
        return EVERY_INPUT_CLOSED, _failure(capable, closed)
    dead = [group for group in node.one_of if not any(_fills(port, node, values) for port in group)]
    if dead:
        return ONE_OF_GROUP_CLOSED, _failure((port for group in dead for port in group), closed)
    return None


def awake(firing: Firing) -> Resume | Skip | None:
    """What a parked firing is due, or None: it goes on waiting."""
    woken = firing.parked_on and firing.parked_on.outcome
    if not woken:
        return None
    if woken.kind == "skipped":
        return Skip(*firing.key, WAIT_SKIPPED)
    return Resume(*firing.key, woken.token)


def _value(port: str, values: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    return values[port] if port in values else given.get(port, MISSING)


def _fills(port: str, node: NodePlan, values: Mapping[str, Any]) -> bool:
    return port in values or (port in node.given and port not in node.defaulted)


def _failure(ports: Iterable[str], closed: Mapping[str, Failure | None]) -> Failure | None:
    """The first failure among these closures, in the order of the ports: arrival order decides nothing."""
    return next((failure for port in ports if (failure := closed.get(port)) is not None), None)
