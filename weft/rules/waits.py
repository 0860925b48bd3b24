"""What a wait is called, when it ends by time, and how long a failed body rests before its next try.

The rule of "first of" and "all of" is in the fold (`flow/suspension.py`); rows, answers and clocks are the
store's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol
from uuid import UUID

_MAC: Final = 32
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{32 + _MAC}}}")
_LAST: Final = datetime.max.replace(microsecond=999_000, tzinfo=UTC)


# --- tokens -----------------------------------------------------------------------------------------------


def token(secret: bytes, run: UUID, node: str, frames: tuple[int | str, ...], call: int, part: int) -> str:
    """The name of one wait: 64 characters of 0-9 and a-f, of which the first 32 are the run.

    The same for the same place in the run, so that a repeated registration is no second wait; not to be
    guessed without the secret. A back-off stands at `call` = minus the number of the try that failed.
    """
    place = json.dumps([run.hex, node, list(frames), call, part], ensure_ascii=False, separators=(",", ":"))
    mac = hmac.new(secret, place.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return run.hex + mac.hexdigest()[:_MAC]


def run_of(token: str) -> UUID:
    """The run that a token leads to, whether or not its wait is still there. ValueError: not a token."""
    if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
        raise ValueError("this is not the token of a wait: a token is 64 characters of 0-9 and a-f")
    return UUID(hex=token[:32])


# --- retries ----------------------------------------------------------------------------------------------


class Retrying(Protocol):
    """`attempts` counts all tries, the first included; `first` and `max` bound the rest between two."""

    @property
    def attempts(self) -> int: ...
    @property
    def first(self) -> timedelta: ...
    @property
    def max(self) -> timedelta: ...


def retry_due(retry: Retrying, attempt: int) -> timedelta:
    """How long to rest after try number `attempt` (from 1) failed: `first`, doubled each time, at most `max`."""
    rest, limit = retry.first, retry.max
    for _ in range(attempt - 1):
        if rest >= limit or not rest:
            break
        rest += min(rest, limit - rest)
    return min(rest, limit)


# --- instants ---------------------------------------------------------------------------------------------


def instant(value: Any) -> datetime:
    """The instant that a text (ISO 8601 with an offset) or an aware datetime names, in UTC.

    ValueError with a message for a person where it names none. An instant in the past is as good as another.
    """
    if isinstance(value, datetime):
        found, said = value, value.isoformat()
    elif isinstance(value, str):
        said = value
        try:
            found = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                f"{_short(said)} is not an instant; write it as ISO 8601, such as 2026-03-01T09:00:00+01:00"
            ) from None
    else:
        raise ValueError(f"an instant is a text or a datetime, not {type(value).__name__}")
    if found.utcoffset() is None:
        raise ValueError(
            f"{_short(said)} has no offset, so it could be any of many instants; add one, such as +01:00, or Z for UTC"
        )
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{_short(said)} is outside the years 1 to 9999 in UTC") from None


def after(now: datetime, delay: timedelta) -> datetime:
    """The instant `delay` from `now`. ValueError where the calendar ends before that."""
    try:
        return now + delay
    except OverflowError:
        edge = "after the year 9999" if delay > timedelta(0) else "before the year 1"
        raise ValueError(f"a wait of {delay.days} days would end {edge}") from None


def instant_text(value: datetime) -> str:
    """An aware instant as it stands in the record: UTC, in whole milliseconds, never before `value`."""
    value = value.astimezone(UTC)
    behind = value.microsecond % 1000
    if behind and value < _LAST:
        value += timedelta(microseconds=1000 - behind)
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
