"""Events as JSON text: how the parts of one are written.

Which kinds there are and which parts they have is in `events.py`; here an event is whatever has the parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from weft.lang.graph import MISSING

to_json: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""The compact JSON text of a value. ValueError for NaN and infinities, TypeError for what is not JSON."""

quoted: Final = encode_basestring
"""The JSON text of a string."""


def firing_text(key: tuple[str, tuple[int | str, ...]]) -> str:
    """A firing as the JSON list `[node, *frames]`."""
    node, frames = key
    return to_json([node, *frames]) if frames else f"[{quoted(node)}]"


def place(event: Any) -> str:
    """The object's beginning: kind, node and frames, without its closing brace."""
    frames = event.frames
    if frames:
        return f'{{"kind":"{event.kind}","node":{quoted(event.node)},"frames":{to_json(frames)}'
    return f'{{"kind":"{event.kind}","node":{quoted(event.node)}'


def placed(event: Any) -> str:
    return place(event) + "}"


def rest(event: Any, *names: str) -> str:
    """The named parts, each with a comma before it, without those that are None."""
    parts = ((name, getattr(event, name)) for name in names)
    return "".join(f',"{name}":{to_json(value)}' for name, value in parts if value is not None)


def with_parts(*names: str) -> Callable[[Any], str]:
    return lambda event: f"{place(event)}{rest(event, *names)}}}"


def of_run(*names: str) -> Callable[[Any], str]:
    return lambda event: f'{{"kind":"{event.kind}"{rest(event, *names)}}}'


# --- the kinds that need more than their parts in order ---------------------------------------------------


def port_emitted(event: Any) -> str:
    text = event.text
    if text is None:
        text = to_json(event.value)
    return f'{place(event)},"call":{event.call},"port":{quoted(event.port)},"value":{text}}}'


def port_closed(event: Any) -> str:
    return f'{place(event)},"call":{event.call},"port":{quoted(event.port)}}}'


def run_output(event: Any) -> str:
    value = "" if event.value is MISSING else f',"value":{to_json(event.value)}'
    return f"{place(event)}{rest(event, 'call', 'name')}{value}{rest(event, 'error')}}}"


def execution_tagged(event: Any) -> str:
    if event.node is None:
        return f'{{"kind":"{event.kind}","tags":{to_json(event.tags)}}}'
    return f'{place(event)},"tags":{to_json(event.tags)}}}'


def suspension_registered(event: Any) -> str:
    mode = "" if event.mode == "first" else f',"mode":{quoted(event.mode)}'
    return f"{place(event)}{rest(event, 'call', 'waits')}{mode}}}"


def suspension_resolved(event: Any) -> str:
    value = "" if event.value is MISSING else f',"value":{to_json(event.value)}'
    if event.text is not None:
        value = f',"value":{event.text}'
    flags = "".join(f',"{name}":true' for name in ("timed_out", "skipped") if getattr(event, name))
    return f"{place(event)}{rest(event, 'call', 'token')}{value}{rest(event, 'by')}{flags}}}"
