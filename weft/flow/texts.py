"""How an event is put together as JSON text: what the encoders in `events.py` share.

Knows that an event has a kind and parts; which kinds and parts there are is not here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

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
