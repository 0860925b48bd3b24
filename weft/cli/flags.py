"""Reading the values of flags: durations, instants, `name=json`. A bad one is a `UsageError` that names its flag."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from weft.errors import UsageError
from weft.lang.storable import unstorable

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_PART = re.compile(rf"({_NUMBER})(ms|[smhdw])")
_LONGEST = timedelta(days=36500)


def duration(text: str, flag: str) -> timedelta:
    """`90` (seconds), `30s`, `5m`, `1h30m`, `2d`; positive.

    Raises:
        UsageError: it reads as no duration, or as one of zero or of more than a hundred years.
    """
    spelled = text.strip().lower()
    if re.fullmatch(_NUMBER, spelled):
        seconds = float(spelled)
    else:
        parts = list(_PART.finditer(spelled))
        if not parts or "".join(part.group() for part in parts) != spelled:
            raise UsageError(f"{flag} {text!r} is not a duration", hint="Write for example 30s, 5m, 1h30m or 2d.")
        seconds = sum(float(part.group(1)) * _UNITS[part.group(2)] for part in parts)
    if not 0 < seconds <= _LONGEST.total_seconds():
        raise UsageError(f"{flag} {text!r} is out of range: more than zero and at most 100 years")
    return timedelta(seconds=seconds)


def since(text: str, now: datetime) -> datetime:
    """`--since`: an ISO 8601 date or instant (without a zone: this machine's), or a duration back from `now`."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    else:
        try:
            return (at if at.tzinfo else at.astimezone()).astimezone(UTC)
        except (OverflowError, ValueError):
            raise UsageError(f"--since {text!r} is out of range") from None
    try:
        return now - duration(text, "--since")
    except UsageError:
        raise UsageError(
            f"--since {text!r} is neither an instant nor a duration",
            hint="Write for example 2026-05-01T09:00:00+02:00, 2026-05-01, 30m or 2d.",
        ) from None


def assignments(pairs: Sequence[str], flag: str) -> dict[str, dict[str, Any]]:
    """`NODE={"port": value}` each: from node to its values.

    Raises:
        UsageError: no `=`, no name, not JSON, not an object, or a node named twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"{flag} {pair!r} is not NODE=JSON", hint=_example(flag))
        if name in found:
            raise UsageError(f"{flag} names {name} twice", hint="Put all its ports into one object.")
        found[name] = _object(text, f"{flag} {name}", flag)
    return found


def _object(text: str, what: str, flag: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        raise UsageError(f"{what}: not JSON at character {error.pos + 1}: {error.msg}", hint=_example(flag)) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{what}: {reason}", hint=_example(flag)) from None
    if not isinstance(value, dict):
        raise UsageError(f"{what}: expected an object from port to value", hint=_example(flag))
    obstacle = unstorable(value)
    if obstacle is not None:
        raise UsageError(f"{what} cannot be stored: {obstacle}", hint=_example(flag))
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def _example(flag: str) -> str:
    return f'Write for example: {flag} \'ask={{"text": "hello"}}\''
