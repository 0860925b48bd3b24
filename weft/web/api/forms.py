"""Forms over the API: which wait, one of them, answering, skipping."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from weft.service import waits
from weft.service.shapes import form_json
from weft.service.waits import Ended, OpenForm
from weft.web.access import visible
from weft.web.api.finding import shown, token_at
from weft.web.api.table import Call
from weft.web.reading import FORM_LIMIT, body, invalid, json_object, one_query, whole_query

MOST: Final = 500
DEFAULT: Final = 50

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_OF_TOKEN: Final = 48


async def list_forms(call: Call) -> Response:
    projects = await visible(call.door.store, call.who, one_query(call.request, "project"))
    limit = max(1, whole_query(call.request, "limit", DEFAULT, MOST))
    after = _after(one_query(call.request, "after"))
    found: list[OpenForm] = []
    while len(found) < limit:
        page = await waits.open_forms(call.door.store, among=projects, limit=limit, after=after)
        found += [each for each in page if call.who.sees(each.run)]
        if len(page) < limit:
            break
        after = page[-1].cursor
    found = found[:limit]
    cursor = _cursor(found[-1]) if len(found) == limit else None
    return JSONResponse({"forms": [shown(call, form_json(each)) for each in found], "cursor": cursor})


async def one_form(call: Call) -> Response:
    token = await token_at(call)
    form = await call.door.late.ask(token, lambda: waits.form(call.door.store, token))
    return JSONResponse(shown(call, {**form_json(form), "schema": form.schema()}))


async def answer_form(call: Call) -> Response:
    given = await json_object(call.request, ["values"])
    values = given.get("values")
    if not isinstance(values, dict):
        raise invalid("`values` is an object with the answers by key", 'As in {"values": {"ok": true}}.')
    return await _end(call, values)


async def skip_form(call: Call) -> Response:
    if await body(call.request, FORM_LIMIT):
        raise invalid("a form is skipped without a body")
    return await _end(call, None)


async def _end(call: Call, values: Mapping[str, Any] | None) -> Response:
    token, store = await token_at(call), call.door.store
    ended: Ended = await call.door.late.ask(
        token, lambda: waits.answer(store, token, values, by=call.who.name, skip=values is None)
    )
    return JSONResponse({"run": str(ended.run.run), "status": ended.run.status})


def _cursor(form: OpenForm) -> str:
    # Not the whole token, which would let its reader answer: what is left out is longer than anybody can guess.
    since, token = form.cursor
    return f"{(since - _EPOCH) // timedelta(microseconds=1)}-{token[:_SHOWN_OF_TOKEN]}"


def _after(text: str | None) -> tuple[datetime, str] | None:
    if text is None:
        return None
    micros, _, token = text.partition("-")
    if not (micros.isascii() and micros.isdigit() and len(micros) <= 17 and len(token) == _SHOWN_OF_TOKEN):
        raise invalid("`after` is not a cursor of this list", "Take the `cursor` of the page before.")
    # `g` comes after every token that begins so.
    return _EPOCH + timedelta(microseconds=int(micros)), f"{token}g"
