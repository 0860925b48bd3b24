"""Who is let into the API, and what they may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request

from weft.errors import NotFound
from weft.service.listing import ProjectRow, projects_named
from weft.service.opening import Store
from weft.service.upkeep import Token, check_token
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

    def sees(self, project: int) -> bool:
        return self.token is None or self.token.project in (None, project)

    def needs(self, right: Right, project: int | None = None, *, missing: str = "there is no such thing") -> None:
        """
        Raises:
            Refused: 403, the token lacks the right.
            NotFound: it is for another project, of which it hears nothing; `missing` says so.
        """
        if self.token is None:
            return
        if project is not None and not self.sees(project):
            raise NotFound(missing)
        if right not in self.token.rights:
            raise Refused(403, "forbidden", f"this token does not have the right {right}")


async def caller(request: Request) -> Caller:
    """Who sent the request. Where no token is needed any is taken, and one that is known has its own rights alone.

    Raises:
        Refused: 401, no token where one is needed, or one that opens nothing.
    """
    store: Store = request.app.state.store
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    given = text.strip() if scheme.lower() == "bearer" else ""
    token = await check_token(store, given) if given else None
    if token is None and not request.app.state.local:
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
    everything = [each for each in await projects_named(store.database, None) if who.sees(each.id)]
    if name is None:
        return everything
    found = [each for each in everything if each.key == name] or [each for each in everything if each.name == name]
    if not found:
        raise NotFound(f"there is no project {name!r}")
    return found
