"""Reading what a client sends: bodies and queries, within limits of size and time, in the encodings that fit."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

import anyio
from starlette.requests import ClientDisconnect, Request

from weft.web.refusals import Refused

FORM_LIMIT: Final = 1024 * 1024
"""Bytes of an answer, and of any body of the API."""

BODY_TIME: Final = timedelta(seconds=10)
"""How long a body may take to come in."""

DISCARDED: Final = 4 * 1024 * 1024
"""Bytes beyond a limit that are still read, and dropped: many clients hear a refusal only once they have sent all."""

MOST_FIELDS: Final = 1000

JSON: Final = "application/json"
URLENCODED: Final = "application/x-www-form-urlencoded"

Fields = dict[str, str | list[str]]


def content_type(request: Request) -> tuple[str, str | None]:
    """The media type in lower case ("" where none is said), and the charset if one is said."""
    kind, *parameters = request.headers.get("content-type", "").split(";")
    charset = None
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return kind.strip().lower(), charset


async def body(request: Request, limit: int) -> bytes:
    """The whole body.

    Raises:
        Refused: 413 for more than `limit` bytes, 408 where it does not come in time, 400 where it breaks off.
    """
    if int(request.headers.get("content-length", "0")) > limit + DISCARDED:
        raise _too_large(limit)
    found, size = bytearray(), 0
    try:
        with anyio.fail_after(BODY_TIME.total_seconds()):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limit:
                    found += chunk
                elif size > limit + DISCARDED:
                    raise _too_large(limit)
    except TimeoutError:
        raise Refused(408, "too-slow", "the body did not come in time", headers={"connection": "close"}) from None
    except ClientDisconnect:
        raise Refused(400, "broken-off", "the body broke off") from None
    if size > limit:
        raise _too_large(limit)
    return bytes(found)


def _too_large(limit: int) -> Refused:
    message = f"the body is larger than {limit:,} bytes, the most that is taken"
    return Refused(413, "too-large", message, None, {"connection": "close"})


CHARSETS: Final = ("utf-8", "ascii", "iso8859-1", "cp1252", "utf-16")
"""Those that texts come in, as Python calls them. It knows many more, some of which take a processor for minutes."""


def decoded(data: bytes, charset: str | None) -> str:
    """The body as text.

    Raises:
        Refused: 415 where it is none, or in a charset that is not known.
    """
    try:
        if charset is not None and codecs.lookup(charset).name not in CHARSETS:
            raise LookupError
        return data.decode(charset or "utf-8")
    except (LookupError, UnicodeError, ValueError):
        raise Refused(
            415, "not-text", f"the body is not text in {charset or 'UTF-8'}", "Send text, JSON or form fields."
        ) from None


def parsed_json(data: bytes) -> Any:
    """The JSON of a body, which is UTF-8.

    Raises:
        Refused: 400 where it is none.
    """
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except RecursionError:
        reason = "it is nested too deep"
    except ValueError as error:
        reason = str(error)
    raise Refused(400, "not-json", f"the body is not JSON: {reason}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def parsed_fields(data: bytes) -> Fields:
    """URL-encoded fields: a text each, or a list of texts where a name stands several times.

    Raises:
        Refused: 400 where they are none, or too many.
    """
    try:
        pairs = parse_qsl(
            data.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict", encoding="utf-8"
        )
    except ValueError:
        raise Refused(
            400, "not-fields", f"the body is not form fields in UTF-8, or has more than {MOST_FIELDS} of them"
        ) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


async def json_object(request: Request, keys: Sequence[str], *, empty: bool = False) -> dict[str, Any]:
    """The body of a request of the API: a JSON object with no other keys than these; no body at all is one too where
    it may be `empty`.

    Raises:
        Refused: 400, 408, 413, 415, or 422 for another shape.
    """
    kind = content_type(request)[0]
    data = await body(request, FORM_LIMIT) if kind == JSON or empty else b""
    if empty and not data:
        return {}
    if kind != JSON:
        raise Refused(415, "not-json", "the body of this request is JSON", f"Send it with Content-Type: {JSON}.")
    value = parsed_json(data)
    if not isinstance(value, dict):
        raise invalid("the body is a JSON object")
    unknown = [key for key in value if key not in keys]
    if unknown:
        raise invalid(f"there is no {unknown[0][:80]!r} here", f"There are: {', '.join(keys)}.")
    return value


def invalid(message: str, hint: str | None = None) -> Refused:
    return Refused(422, "invalid", message, hint)


def one_query(request: Request, name: str) -> str | None:
    """A parameter of the query that stands there once at most; 422 otherwise."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise invalid(f"the parameter {name} stands there {len(values)} times")
    return values[0] if values else None


def whole_query(request: Request, name: str, default: int, most: int) -> int:
    """A whole number of the query, from 0 to `most`; 422 otherwise."""
    text = one_query(request, name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) <= most):
        raise invalid(f"the parameter {name} is a whole number from 0 to {most}")
    return int(text)


def known_query(request: Request, names: Sequence[str]) -> None:
    """422 for a parameter that this address does not have, so that a misspelt filter is not passed over."""
    for name in request.query_params:
        if name not in names:
            known = f"There are: {', '.join(names)}." if names else "There are none."
            raise invalid(f"there is no parameter {name[:80]!r} here", known)


def text_of(values: Mapping[str, Any], key: str) -> str | None:
    """A text of a body, or None; 422 otherwise."""
    value = values.get(key)
    if value is None or isinstance(value, str):
        return value
    raise invalid(f"`{key}` is a text")
