"""Webhooks: whoever has the address of one sends it a request, and the run that waits gets what came."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from weft.service import waits
from weft.service.waits import Request
from weft.web.api.table import Call
from weft.web.reading import JSON, URLENCODED, body, content_type, decoded, parsed_fields, parsed_json
from weft.web.refusals import Refused

KEPT_BACK: Final = frozenset({"authorization", "cookie", "proxy-authorization", "proxy-authenticate"})
"""Headers that never reach a run: they hold what opens something elsewhere."""


async def receive(call: Call) -> Response:
    token, store = call.at("token"), call.door.store
    # Asked first, so that nobody sends megabytes to where nothing waits.
    await call.door.late.ask(token, lambda: waits.webhook(store, token))
    value = await _body(call.request, store.settings.engine.value_limit)
    request = Request(value, _headers(call.request), _query(call.request))
    ended = await call.door.late.ask(token, lambda: waits.receive(store, token, request))
    return JSONResponse({"received": True, "run": str(ended.run.run)}, 202)


async def _body(request: HttpRequest, limit: int) -> Any:
    """JSON, form fields, or text."""
    kind, charset = content_type(request)
    if kind.startswith("multipart/"):
        raise Refused(
            415,
            "multipart",
            "a webhook takes no multipart bodies, and no files",
            f"Send JSON, text, or form fields as {URLENCODED}.",
        )
    data = await body(request, limit)
    if kind == JSON or kind.endswith("+json"):
        return parsed_json(data)
    if kind == URLENCODED:
        return parsed_fields(data)
    return decoded(data, charset)


def _headers(request: HttpRequest) -> dict[str, str]:
    names = dict.fromkeys(name for name in request.headers if name not in KEPT_BACK)
    return {name: ", ".join(request.headers.getlist(name)) for name in names}


def _query(request: HttpRequest) -> dict[str, str]:
    names = dict.fromkeys(request.query_params)
    return {name: ",".join(request.query_params.getlist(name)) for name in names}
