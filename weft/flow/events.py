"""What happens in a run, one slotted class a kind, and its JSON form: the only place that spells the kinds.

An event is a fact learned from outside the fold (a body emitted, failed, logged) or a step that the fold
asked for (a kick, a start, a skip). What events mean is `state.py`; where they are kept is the store's
business. Events are never changed once made; they are not frozen only because a frozen class costs twice as
much to make.

Values are JSON values; whoever makes an event has checked that they can be stored. Texts for people
(messages, reasons, log lines) must be storable too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, ClassVar, Final

from weft.lang.graph import MISSING

Frames = tuple[int | str, ...]
"""One entry per enclosing loop (iteration index) or include call (site); the top level is `()`."""

Key = tuple[str, Frames]
"""A firing within its run: node and frames."""

Error = dict[str, Any]
"""`{"message": str, "type": str}` and, where there is one, `"hint": str` and `"traceback": str`."""

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
    """The body runs again from the top; `token` is None after a crash."""

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

CLASSES: Final[dict[str, type[Event]]] = {
    cls.kind: cls
    for cls in (
        ExecutionStarted,
        NodeKicked,
        NodeStarted,
        NodeResumed,
        PortEmitted,
        PortClosed,
        RunOutput,
        NodeCompleted,
        NodeFailed,
        NodeSkipped,
        NodeCancelled,
        ExecutionTagged,
        LogLine,
        CostReported,
        ExecutionCompleted,
        ExecutionFailed,
        ExecutionCancelled,
    )
}
"""Each kind's class, in the order of a run's life."""


# --- to JSON ----------------------------------------------------------------------------------------------

to_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""The compact JSON text of a value. ValueError for NaN and infinities, TypeError for what is not JSON."""

quoted: Final = encode_basestring
"""The JSON text of a string."""


def encode(event: Event) -> str:
    """The event as a compact JSON object, `kind` first, empty frames and absent parts left out."""
    return _ENCODERS[type(event)](event)


def firing_text(key: Key) -> str:
    """A firing as the JSON list `[node, *frames]`."""
    node, frames = key
    return to_json([node, *frames]) if frames else f"[{quoted(node)}]"


def _place(event: Any) -> str:
    frames = event.frames
    if frames:
        return f'{{"kind":"{event.kind}","node":{quoted(event.node)},"frames":{to_json(frames)}'
    return f'{{"kind":"{event.kind}","node":{quoted(event.node)}'


def _placed(event: Any) -> str:
    return _place(event) + "}"


def _port_emitted(event: PortEmitted) -> str:
    text = event.text
    if text is None:
        text = to_json(event.value)
    return f'{_place(event)},"call":{event.call},"port":{quoted(event.port)},"value":{text}}}'


def _port_closed(event: PortClosed) -> str:
    return f'{_place(event)},"call":{event.call},"port":{quoted(event.port)}}}'


def _rest(event: Any, *names: str) -> str:
    """The named parts, each with a comma before it, without those that are None or MISSING."""
    parts = ((name, getattr(event, name)) for name in names)
    return "".join(f',"{name}":{to_json(value)}' for name, value in parts if value is not None)


def _run_output(event: RunOutput) -> str:
    value = "" if event.value is MISSING else f',"value":{to_json(event.value)}'
    return f"{_place(event)}{_rest(event, 'call', 'name')}{value}{_rest(event, 'error')}}}"


def _execution_tagged(event: ExecutionTagged) -> str:
    if event.node is None:
        return f'{{"kind":"{event.kind}","tags":{to_json(event.tags)}}}'
    return f'{_place(event)},"tags":{to_json(event.tags)}}}'


def _with(*names: str) -> Callable[[Any], str]:
    return lambda event: f"{_place(event)}{_rest(event, *names)}}}"


def _of_run(*names: str) -> Callable[[Any], str]:
    return lambda event: f'{{"kind":"{event.kind}"{_rest(event, *names)}}}'


_ENCODERS: Final[dict[type[Event], Callable[[Any], str]]] = {
    ExecutionStarted: _of_run("project", "program", "entry", "selection"),
    NodeKicked: _placed,
    NodeStarted: _placed,
    NodeResumed: _with("token"),
    PortEmitted: _port_emitted,
    PortClosed: _port_closed,
    RunOutput: _run_output,
    NodeCompleted: _placed,
    NodeFailed: _with("error"),
    NodeSkipped: _with("reason"),
    NodeCancelled: _with("reason", "cause"),
    ExecutionTagged: _execution_tagged,
    LogLine: _with("level", "text"),
    CostReported: _with("service", "amount"),
    ExecutionCompleted: _of_run(),
    ExecutionFailed: _of_run("error"),
    ExecutionCancelled: _of_run("reason", "cause"),
}


# --- from JSON --------------------------------------------------------------------------------------------

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
    try:
        return cls(**parts)
    except TypeError as error:
        raise ValueError(f"an event of the kind {kind} cannot be read: {error}") from None
