"""One activation of a node, as the run's record tells it, and the failures that travel in closures.

Data alone: `state.py` changes it, `ready.py` judges it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final, Literal

from weft.flow.events import Error, Frames, Key, RunOutput, SuspensionResolved
from weft.flow.plan import NodePlan
from weft.flow.suspension import Suspension

Status = Literal["waiting", "due", "running", "parked", "completed", "failed", "skipped", "cancelled"]
"""Waiting: for its wires. Parked: for the end of a suspension or of a back-off."""


class Closed(enum.Enum):
    """Told apart from null: nothing will come."""

    CLOSED = "closed"

    def __repr__(self) -> str:
        return "CLOSED"


CLOSED: Final = Closed.CLOSED


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a failure began, and its error: what a closure may carry through any number of skips."""

    node: str
    frames: Frames
    error: Error


Call = tuple[tuple[str, Any], ...]
"""What one emitting call named: each port with its value, or `CLOSED`."""


class Firing:
    """One activation of a node.

    `values` and `closed` are what came over its wires, gates included; `closed` holds the failure that the
    closure carried, or None. `awaited` counts the wires that are still silent. `sent` is what its outputs
    carried so far. For a body that runs again: `calls` are its recorded emitting calls in order, `outputs`
    its recorded `ctx.run` outcomes and `suspensions` its recorded waits by call index, in the order of the
    record, `logged` how many log lines and costs of this try are on record. `attempts` counts the tries that
    failed; `parked_on` is what a parked firing waits for; `early` are ends of waits that are not on record.
    `reason` says why it was skipped or cancelled; `failure` is what its own closures carry.
    """

    __slots__ = (
        "attempts",
        "awaited",
        "calls",
        "closed",
        "early",
        "failure",
        "key",
        "logged",
        "outputs",
        "parked_on",
        "plan",
        "reason",
        "sent",
        "status",
        "suspensions",
        "values",
    )

    def __init__(self, plan: NodePlan, key: Key) -> None:
        self.plan = plan
        self.key = key
        self.status: Status = "waiting"
        self.awaited = plan.awaited
        self.values: dict[str, Any] = {}
        self.closed: dict[str, Failure | None] = dict.fromkeys(plan.shut)
        self.sent: dict[str, Any] = {}
        self.calls: list[Call] = []
        self.outputs: dict[int, RunOutput] = {}
        self.suspensions: dict[int, Suspension] = {}
        self.logged = 0
        self.attempts = 0
        self.parked_on: Suspension | None = None
        self.early: dict[str, SuspensionResolved] | None = None
        self.reason: str | None = None
        self.failure: Failure | None = None

    @property
    def node(self) -> str:
        return self.key[0]

    @property
    def frames(self) -> Frames:
        return self.key[1]

    @property
    def unanswered(self) -> list[str]:
        """The tokens of all its waits that have not ended: what is to be erased when the firing ends."""
        waits = list(self.suspensions.values())
        if self.parked_on is not None and self.parked_on not in waits:
            waits.append(self.parked_on)
        return [token for each in waits for token in each.unanswered]

    def __repr__(self) -> str:
        return f"<Firing {name_of(self.key)} {self.status}>"


def name_of(key: Key) -> str:
    """A firing as a person reads it: the node, then its frames in brackets."""
    node, frames = key
    return node + "".join(f"[{frame}]" for frame in frames)
