"""Who is let into the API, and what they may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request

from weft.errors import NotFound
from weft.service.listing import ProjectRow, RunRow, projects_named
from weft.service.opening import Store
from weft.service.upkeep import Token, check_token
from weft.web.door import door_of
from weft.web.refusals import Refused

Right = Literal["read", "answer", "run", "stop", "configure"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. Without a token it is somebody on this machine, who may do everything."""

    token: Token | None

    @property
    def name(self) -> str:
        """By whom an answer is given."""
        return "the API" if self.token is None else f"the token {self.token.name!r}"

    def may(self, right: Right) -> bool:
        return self.token is None or right in self.token.rights

    def needs(self, right: Right) -> None:
        """
        Raises:
            Refused: 403, the token lacks the right.
        """
        if not self.may(right):
            raise Refused(403, "forbidden", f"this token does not have the right {right}")

    def sees_project(self, project: int) -> bool:
        return self.token is None or self.token.project in (None, project)

    @property
    def tag(self) -> str | None:
        """The tag that a run must carry for the caller to see it; None: any run."""
        return None if self.token is None else self.token.tag

    def sees(self, run: RunRow) -> bool:
        return self.sees_project(run.project) and self.tag in (None, *run.tags)


async def caller(request: Request) -> Caller:
    """Who sent the request. Where no token is needed any is taken, and one that is known has its own rights alone.

    Raises:
        Refused: 401, no token where one is needed, or one that opens nothing.
    """
    door = door_of(request)
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    given = text.strip() if scheme.lower() == "bearer" else ""
    token = await check_token(door.store, given) if given else None
    if token is None and not door.local:
        what = "this token opens nothing" if given else "this needs a token"
        raise Refused(
            401,
            "unauthorised",
            what,
            "Send it as Authorization: Bearer TOKEN; weft token mint makes one.",
            {"www-authenticate": "Bearer"},
        )
    return Caller(token)


async def visible(store: Store, who: Caller, name: str | None) -> list[ProjectRow]:
    """The projects that are meant by a key or name, or all, as far as the caller sees them.

    Raises:
        NotFound: none of them.
    """
    everything = [each for each in await projects_named(store.database, None) if who.sees_project(each.id)]
    if name is None:
        return everything
    found = [each for each in everything if each.key == name] or [each for each in everything if each.name == name]
    if not found:
        raise NotFound(f"there is no project {name[:80]!r}")
    return found
