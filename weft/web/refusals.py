"""From what went wrong to an HTTP status and `{"code", "message", "hint"}`. How it is shown is the faces' own."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from weft.errors import (
    AlreadyAnswered,
    AnswerRefused,
    Conflict,
    DoesNotCompile,
    NodeError,
    NotFound,
    StoreUnreachable,
    UsageError,
    WaitGone,
    WeftError,
)
from weft.lang.graph import MISSING
from weft.log import get_logger
from weft.rules.waits import instant_text
from weft.store.pool import CONNECTION_LOST

log = get_logger("weft.web")

_STATUSES: Final[tuple[tuple[type[WeftError], int], ...]] = (
    (WaitGone, 410),
    (AlreadyAnswered, 409),
    (Conflict, 409),
    (NotFound, 404),
    (UsageError, 422),
    (DoesNotCompile, 422),
    (NodeError, 422),
    (StoreUnreachable, 503),
)


class Refused(Exception):
    """A request that HTTP itself refuses: `status`, a stable `code`, and what to do about it."""

    def __init__(
        self, status: int, code: str, message: str, hint: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is said to the client. `more` stands beside code, message and hint."""

    status: int
    code: str
    message: str
    hint: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def response(self) -> JSONResponse:
        """In the envelope of the API: `{"error": {"code", "message"}}`, `hint` and what else there is beside them."""
        hint = {} if self.hint is None else {"hint": self.hint}
        body = {"error": {"code": self.code, "message": self.message, **hint, **self.more}}
        return JSONResponse(body, self.status, dict(self.headers))


def refusal(error: Exception) -> Refusal:
    """What to say of an error. One that nobody foresaw is logged by its kind and place alone, since its text may hold
    what a client sent."""
    if isinstance(error, Refused):
        return Refusal(error.status, error.code, error.message, error.hint, error.headers)
    if isinstance(error, HTTPException):
        return _of_starlette(error)
    if isinstance(error, WeftError):
        for kind, status in _STATUSES:
            if isinstance(error, kind):
                headers = {"retry-after": "1"} if status == 503 else {}
                message = _AWAY if status == 503 else error.message
                return Refusal(status, error.code, message, error.hint, headers, _more(error))
    if isinstance(error, CONNECTION_LOST):
        return Refusal(503, "store-unreachable", _AWAY, _AGAIN, {"retry-after": "1"})
    places = traceback.extract_tb(error.__traceback__)
    where = [f"{each.filename}:{each.lineno}" for each in places[-3:]]
    log.warning("a request failed unexpectedly", error=type(error).__name__, where=where)
    return Refusal(500, "unexpected", "this is a fault of weft", "The log of weft serve says where it happened.")


_AWAY: Final = "the database cannot be reached"
_AGAIN: Final = "Try again: what was saved is saved once, and an answer counts once."


def _of_starlette(error: HTTPException) -> Refusal:
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return Refusal(405, "method", f"this address takes {allowed} alone", None, {"allow": allowed})
    if error.status_code == 404:
        return Refusal(404, "not-found", "there is nothing at this address", "GET /openapi.json says what there is.")
    phrase = HTTPStatus(error.status_code).phrase
    return Refusal(error.status_code, phrase.lower().replace(" ", "-"), str(error.detail).lower())


def _more(error: WeftError) -> dict[str, Any]:
    match error:
        case AnswerRefused():
            return {"fields": error.fields}
        case AlreadyAnswered():
            value = {} if error.value is MISSING else {"value": error.value}
            at = instant_text(error.at)
            return {"at": at, "by": error.by, "timed_out": error.timed_out, "skipped": error.skipped, **value}
        case WaitGone():
            return {"at": instant_text(error.at), "reason": error.reason, "status": error.status, "cause": error.cause}
        case _:
            return {}


def forget_traceback(error: Exception) -> Exception:
    """An error that is kept to be raised again, without the frames that it came through."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)
