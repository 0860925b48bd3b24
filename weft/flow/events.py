"""What happens in a run, one slotted class a kind, and its JSON form: the only place that spells the kinds.

An event is a fact learned from outside the fold (a body emitted, failed, logged) or a step that the fold
asked for (a kick, a start, a skip). What events mean is `state.py`; where they are kept is the store's
business. Events are never changed once made; they are not frozen only because a frozen class costs twice as
much to make.

Values are JSON values; whoever makes an event has checked that they can be stored. Texts for people
(messages, reasons, log lines) must be storable too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, get_args

from weft.flow.texts import (
    execution_tagged,
    of_run,
    placed,
    port_closed,
    port_emitted,
    run_output,
    suspension_registered,
    suspension_resolved,
    with_parts,
)
from weft.flow.texts import firing_text as firing_text
from weft.flow.texts import to_json as to_json
from weft.lang.graph import MISSING

Frames = tuple[int | str, ...]
"""One entry per enclosing loop (iteration index) or include call (site); the top level is `()`."""

Key = tuple[str, Frames]
"""A firing within its run: node and frames."""

Error = dict[str, Any]
"""`{"message": str, "type": str}` and, where there is one, `"hint": str` and `"traceback": str`."""

Mode = Literal["first", "all"]

NOWHERE: Final[Frames] = ()


@dataclass(slots=True)
class ExecutionStarted:
    """`project` is the project's id, `program` the program's hash, `selection` the JSON of a `Selection`.

    Without a selection the whole program runs.
    """

    kind: ClassVar[str] = "execution_started"
    project: str
    program: str
    entry: str
    selection: dict[str, Any] | None = None


@dataclass(slots=True)
class NodeKicked:
    kind: ClassVar[str] = "node_kicked"
    node: str
    frames: Frames = NOWHERE


@dataclass(slots=True)
class NodeStarted:
    kind: ClassVar[str] = "node_started"
    node: str
    frames: Frames = NOWHERE


@dataclass(slots=True)
class NodeResumed:
    """The body runs again from the top; `token` is that of what ended its wait, None after a crash."""

    kind: ClassVar[str] = "node_resumed"
    node: str
    frames: Frames = NOWHERE
    token: str | None = None


@dataclass(slots=True)
class PortEmitted:
    """`call` counts the firing's emitting calls from 0; the ports of one call share it, and a call has a
    port.

    `text` is the value already encoded as JSON, where whoever made the event had it at hand.
    """

    kind: ClassVar[str] = "port_emitted"
    node: str
    frames: Frames
    call: int
    port: str
    value: Any
    text: str | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class PortClosed:
    """An explicit early close. `call` counts in one sequence with that of `PortEmitted`."""

    kind: ClassVar[str] = "port_closed"
    node: str
    frames: Frames
    call: int
    port: str


@dataclass(slots=True)
class RunOutput:
    """What a `ctx.run` gave: a value (null is one), or the error it ended with."""

    kind: ClassVar[str] = "run_output"
    node: str
    frames: Frames
    call: int
    name: str
    value: Any = MISSING
    error: Error | None = None


@dataclass(slots=True)
class SuspensionRegistered:
    """One `await_signal`, at its position among the firing's recorded calls, with one wait or several.

    Each wait is `{"token", "kind", "spec"}` and, where there is one, `"due"`: an instant, at which a timer
    fires and any other wait times out. `kind` is form, timer, webhook or run. Of several, `mode` says whether
    the first that ends is enough.
    """

    kind: ClassVar[str] = "suspension_registered"
    node: str
    frames: Frames
    call: int
    waits: tuple[dict[str, Any], ...]
    mode: Mode = "first"


@dataclass(slots=True)
class NodeSuspended:
    """The body has left, and the firing is parked on the suspension that `token`, of its first wait, names."""

    kind: ClassVar[str] = "node_suspended"
    node: str
    frames: Frames
    token: str


@dataclass(slots=True)
class SuspensionResolved:
    """One wait has ended: with a value (null is one), at its time, or because a person skipped the form.

    `by` says who or what ended it. `call` is that of the suspension; the end of a back-off may give any. `text`
    is the value already encoded, as in `PortEmitted`.
    """

    kind: ClassVar[str] = "suspension_resolved"
    node: str
    frames: Frames
    call: int
    token: str
    value: Any = MISSING
    by: str = ""
    timed_out: bool = False
    skipped: bool = False
    text: str | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class NodeRetryScheduled:
    """Try number `attempt`, from 1, failed with `error`; the next begins when the wait `token` ends, at `due`."""

    kind: ClassVar[str] = "node_retry_scheduled"
    node: str
    frames: Frames
    attempt: int
    token: str
    due: str
    error: Error


@dataclass(slots=True)
class NodeCompleted:
    kind: ClassVar[str] = "node_completed"
    node: str
    frames: Frames = NOWHERE


@dataclass(slots=True)
class NodeFailed:
    kind: ClassVar[str] = "node_failed"
    node: str
    frames: Frames
    error: Error


@dataclass(slots=True)
class NodeSkipped:
    kind: ClassVar[str] = "node_skipped"
    node: str
    frames: Frames
    reason: str


@dataclass(slots=True)
class NodeCancelled:
    kind: ClassVar[str] = "node_cancelled"
    node: str
    frames: Frames
    reason: str
    cause: dict[str, Any] | None = None


@dataclass(slots=True)
class ExecutionTagged:
    """`node` is None for the tags that a run was started with."""

    kind: ClassVar[str] = "execution_tagged"
    node: str | None
    frames: Frames
    tags: tuple[str, ...]


@dataclass(slots=True)
class LogLine:
    kind: ClassVar[str] = "log_line"
    node: str
    frames: Frames
    level: str
    text: str


@dataclass(slots=True)
class CostReported:
    """`amount` None is an unknown amount, which is not 0."""

    kind: ClassVar[str] = "cost_reported"
    node: str
    frames: Frames
    service: str
    amount: float | None = None


@dataclass(slots=True)
class ExecutionCompleted:
    kind: ClassVar[str] = "execution_completed"


@dataclass(slots=True)
class ExecutionFailed:
    kind: ClassVar[str] = "execution_failed"
    error: str


@dataclass(slots=True)
class ExecutionCancelled:
    kind: ClassVar[str] = "execution_cancelled"
    reason: str
    cause: dict[str, Any] | None = None


Event = (
    ExecutionStarted
    | NodeKicked
    | NodeStarted
    | NodeResumed
    | PortEmitted
    | PortClosed
    | RunOutput
    | SuspensionRegistered
    | NodeSuspended
    | SuspensionResolved
    | NodeRetryScheduled
    | NodeCompleted
    | NodeFailed
    | NodeSkipped
    | NodeCancelled
    | ExecutionTagged
    | LogLine
    | CostReported
    | ExecutionCompleted
    | ExecutionFailed
    | ExecutionCancelled
)

Ending = ExecutionCompleted | ExecutionFailed | ExecutionCancelled

CLASSES: Final[dict[str, type[Event]]] = {cls.kind: cls for cls in get_args(Event)}
"""Each kind's class, in the order of a run's life."""


def encode(event: Event) -> str:
    """The event as a compact JSON object, `kind` first, empty frames and absent parts left out."""
    return _ENCODERS[type(event)](event)


_ENCODERS: Final[dict[type[Event], Callable[[Any], str]]] = {
    ExecutionStarted: of_run("project", "program", "entry", "selection"),
    NodeKicked: placed,
    NodeStarted: placed,
    NodeResumed: with_parts("token"),
    PortEmitted: port_emitted,
    PortClosed: port_closed,
    RunOutput: run_output,
    SuspensionRegistered: suspension_registered,
    NodeSuspended: with_parts("token"),
    SuspensionResolved: suspension_resolved,
    NodeRetryScheduled: with_parts("attempt", "token", "due", "error"),
    NodeCompleted: placed,
    NodeFailed: with_parts("error"),
    NodeSkipped: with_parts("reason"),
    NodeCancelled: with_parts("reason", "cause"),
    ExecutionTagged: execution_tagged,
    LogLine: with_parts("level", "text"),
    CostReported: with_parts("service", "amount"),
    ExecutionCompleted: of_run(),
    ExecutionFailed: of_run("error"),
    ExecutionCancelled: of_run("reason", "cause"),
}


_ROOTED: Final = frozenset(name for name, cls in CLASSES.items() if "frames" in cls.__dataclass_fields__)


def decode(obj: dict[str, Any]) -> Event:
    """The event that `encode` wrote. ValueError for a kind or a part that this weft does not know."""
    kind = obj.get("kind")
    cls = CLASSES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"no event is of the kind {kind!r}; it may have been written by a newer weft")
    parts = {name: value for name, value in obj.items() if name != "kind"}
    if kind in _ROOTED:
        frames = parts.get("frames")
        parts["frames"] = tuple(frames) if frames else NOWHERE
    if cls is ExecutionTagged:
        parts["tags"] = tuple(parts.get("tags", ()))
        parts.setdefault("node", None)
    elif cls is SuspensionRegistered:
        parts["waits"] = tuple(parts.get("waits", ()))
    try:
        return cls(**parts)
    except TypeError as error:
        raise ValueError(f"an event of the kind {kind} cannot be read: {error}") from None
