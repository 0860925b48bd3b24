"""The ASGI application: which part of the door answers what, behind what every request passes.

A part is an `Area`: a prefix, an application, and how it says what went wrong. Another one with an envelope of its own
is one more line in `areas`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.web import pages
from weft.web.api import routes as api
from weft.web.door import Door
from weft.web.guard import Guard, with_headers
from weft.web.refusals import Refusal, log, refusal


@dataclass(frozen=True, slots=True)
class Area:
    """What stands below a prefix, "" for the rest. `say` shows an error, `app` raises it."""

    prefix: str
    app: ASGIApp
    say: Callable[[Refusal], Response]

    def has(self, path: str) -> bool:
        return path == self.prefix or path.startswith(f"{self.prefix}/")


def areas() -> list[Area]:
    """The first that has the path answers."""
    by_program = Router(api.routes(), redirect_slashes=False)
    by_person = Router(pages.routes(), redirect_slashes=False)
    return [
        *(Area(prefix, by_program, Refusal.response) for prefix in api.PREFIXES),
        Area("", by_person, pages.say),
    ]


class Site:
    """Guards, finds the area, and turns whatever went wrong into an answer."""

    def __init__(self, door: Door, guard: Guard, parts: Sequence[Area]) -> None:
        self._door = door
        self._guard = guard
        self._areas = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        area = next((each for each in self._areas if each.has(scope["path"])), self._areas[-1])
        # Where there is an "app", starlette raises what it would else answer as plain text.
        scope.update({"app": self, "weft.door": self._door})
        sending = _Sending(with_headers(send))
        try:
            self._guard.check(scope)
            await area.app(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception as error:
            said = refusal(error)
            if sending.begun:
                # Nothing can be said any more; the connection ends, which tells that something is missing.
                log.info("an answer broke off", error=type(error).__name__)
                return
            await area.say(said)(scope, receive, sending)


class _Sending:
    """Knows whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


def build(door: Door, host: str) -> ASGIApp:
    """The application of a door that is bound to `host`."""
    return Site(door, Guard(door.local, host), areas())
