"""What a body run in the rig came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node failed, as the journal would say it; `error` is the exception itself."""

    message: str
    type: str
    hint: str | None
    traceback: str | None
    error: BaseException

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A child run that a body asked for."""

    run: str
    program: str
    inputs: dict[str, dict[str, Any]]
    tags: list[str]


@dataclass(slots=True)
class Outcome:
    """One firing, from its start to its end, crashes and waits in between included.

    `outputs`: what was emitted, by port. `closed`: every other port, those closed early first. `failed`: why
    the node failed, or None. `cancelled`: it was stopped; `after_stop` is what the body raised then, if not
    the cancellation. `logs`: level and text of each line; `costs`: service and amount, None where unknown.
    `saved`: name and value of each outcome that `ctx.run` saved (a `Failure`-like dict where it failed).
    `left_behind`: threads that went on. `remarks`: what the runtime noted about a body that ran again.
    `attempts`: how often the body was begun. `waits`: what the body waited for, in the order in which it was
    registered, each `{"token", "kind", "spec"}` and, for a timer or with a time-out, `"due"`; `waiting`: those that it
    still waits for, since nothing ended them. `skipped`: a person skipped its form.
    """

    outputs: dict[str, Any] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    failed: Failure | None = None
    cancelled: bool = False
    after_stop: Failure | None = None
    logs: list[tuple[str, str]] = field(default_factory=list)
    costs: list[tuple[str, float | None]] = field(default_factory=list)
    saved: list[tuple[str, Any]] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    attempts: int = 0
    waits: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    skipped: bool = False
