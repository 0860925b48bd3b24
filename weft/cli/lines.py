"""Stored facts as lines of text: what `weft events`, `weft logs` and `weft executions` print.

Pure: dictionaries and instants in, text out. Not here: where the text goes and what colour it has (`output.py`), and
where the facts come from (`weft.service.listing`).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

Clock = Literal["unix", "utc", "local"]

CUT_AT = 120
KIND_WIDTH = 21

_NEVER_CUT = frozenset({"reason"})
"""Why a run or node ended is the one thing that a person came to read."""

_ALWAYS_SHOWN = frozenset({"value"})
"""An emitted `null`, `""` or `[]` is a value, not an absence."""

_HEAD = frozenset({"kind", "node"})
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def instant(at: datetime, clock: Clock) -> str:
    """An instant as a line begins with it: unix seconds, or ISO 8601 with its zone."""
    if clock == "unix":
        return str(int(at.timestamp()))
    return iso(at, local=clock == "local")


def iso(at: datetime, *, local: bool = False) -> str:
    """ISO 8601 with zone, to the millisecond: `Z` for UTC, else this machine's offset."""
    if local:
        return at.astimezone().isoformat(timespec="milliseconds")
    from datetime import UTC

    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def compact(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cut(text: str, limit: int = CUT_AT) -> str:
    """At most `limit` characters, the last a `…` where something is missing; no accent parts from its letter."""
    if len(text) <= limit:
        return text
    end = limit - 1
    while end > 0 and (unicodedata.combining(text[end]) or text[end] in _JOINERS or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end] + "…"


def one_line(text: str) -> str:
    """Control characters written out, so that a value neither breaks its line nor moves a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or _is_text(char) else json.dumps(char).strip('"') for char in text)


def _is_text(char: str) -> bool:
    """Unprintable by Python's rule, yet harmless: other spaces, joiners, private and unassigned characters."""
    return unicodedata.category(char) in ("Zs", "Co", "Cn") or char in _JOINERS


def shown(value: Any) -> str:
    """A string bare, a list of strings joined by commas, the rest as JSON."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return one_line(",".join(value))
    return compact(value)


def event_line(event: Mapping[str, Any], at: datetime, *, full: bool = False, clock: Clock = "unix") -> str:
    """One event as `weft events` prints it: `[time] kind  node key=value …`.

    The reason comes first and is never cut. Its structured cause says the same thing again, so it is left to `full`.
    """
    parts = [f"[{instant(at, clock)}] {event['kind']:<{KIND_WIDTH}}"]
    if event.get("node"):
        parts.append(one_line(str(event["node"])))
    for key in sorted(event, key=lambda key: key != "reason"):
        value = event[key]
        if key in _HEAD or (key == "cause" and event.get("reason") and not full):
            continue
        if key not in _ALWAYS_SHOWN and value in (None, "", [], {}):
            continue
        text = shown(value)
        parts.append(f"{key}={text if full or key in _NEVER_CUT else cut(text)}")
    return " ".join(parts).rstrip()


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as columns two spaces apart, each as wide as its widest cell: nothing is ever cut."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
