"""What a caller means and may see: a run of a path, and what is kept from who may not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from weft.errors import NotFound
from weft.rules.waits import run_of
from weft.service.ids import find_run
from weft.service.listing import RunRow
from weft.web.api.table import Call


async def run_at(call: Call) -> RunRow:
    """The run that the path names by its whole id.

    Raises:
        NotFound: there is none, or none that the caller sees.
    """
    text = call.at("run")
    try:
        run = UUID(text)
    except ValueError:
        raise NotFound("this is no whole id of a run", hint="GET /api/v1/runs lists them.") from None
    return await _seen(call, run, f"no run has the id {run}")


async def token_at(call: Call) -> str:
    """The token of a wait that the path names, of a run that the caller sees; whether it is open is not looked at.

    Raises:
        NotFound: it cannot be one.
    """
    token = call.at("token")
    try:
        run = run_of(token)
    except ValueError as error:
        raise NotFound(str(error)) from None
    await _seen(call, run, "there is no wait of this token")
    return token


async def _seen(call: Call, run: UUID, missing: str) -> RunRow:
    try:
        row = await find_run(call.door.store.database, str(run))
    except NotFound:
        raise NotFound(missing) from None
    if not call.who.sees(row):
        raise NotFound(missing)
    return row


def shown(call: Call, value: Mapping[str, Any]) -> dict[str, Any]:
    """A form, a wait or an event as the caller may see it. Whoever has the token of a wait can end it, so that it is
    kept from who may not answer."""
    if call.who.may("answer"):
        return dict(value)
    hidden: dict[str, Any] = {}
    for name, each in value.items():
        if name in ("token", "path"):
            hidden[name] = None
        elif name == "waits" and isinstance(each, list):
            hidden[name] = [shown(call, wait) for wait in each]
        else:
            hidden[name] = each
    return hidden
