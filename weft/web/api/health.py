"""Whether the process lives, and whether it can do its work; and what the API is."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from weft.service.listing import projects_named
from weft.web.api.table import Call
from weft.web.refusals import Refused


async def healthz(call: Call) -> Response:
    return JSONResponse({"alive": True})


async def readyz(call: Call) -> Response:
    if call.door.stopping.is_set():
        raise Refused(503, "stopping", "this weft serve is draining", None, {"retry-after": "5"})
    await projects_named(call.door.store.database, None)
    return JSONResponse({"ready": True})
