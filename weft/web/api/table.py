"""What an endpoint is: one row of the table from which both the routes and their description are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from weft.web.access import Caller, Right, caller
from weft.web.door import Door, door_of
from weft.web.reading import known_query

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was let in."""

    request: Request
    door: Door
    who: Caller

    def at(self, name: str) -> str:
        """A part of the path."""
        value: str = self.request.path_params[name]
        return value


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query. One whose schema is a list may stand there several times."""

    name: str
    schema: Schema
    says: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`right` None: for anybody who comes to the door. `query` None: any is taken. `bodies` are schemas by media type,
    `answers` by status and media type; `errors` are the statuses beside those that every endpoint of its kind has."""

    method: str
    path: str
    name: str
    says: str
    handler: Callable[[Call], Awaitable[Response]]
    right: Right | None
    answers: Mapping[int, Mapping[str, Schema]]
    query: Sequence[Parameter] | None = ()
    headers: Sequence[Parameter] = ()
    bodies: Mapping[str, Schema] = field(default_factory=dict)
    body_may_be_empty: bool = False
    errors: Sequence[int] = ()


def routes_of(endpoints: Sequence[Endpoint]) -> list[Route]:
    """One route a path, so that a wrong method is told which are right."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in endpoints:
        by_path.setdefault(each.path, {})[each.method] = each
    return [Route(path, _calling(methods), methods=list(methods)) for path, methods in by_path.items()]


def _calling(methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def call(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        who = Caller(None)
        if endpoint.right is not None:
            who = await caller(request)
            who.needs(endpoint.right)
        if endpoint.query is not None:
            known_query(request, [each.name for each in endpoint.query])
        return await endpoint.handler(Call(request, door_of(request), who))

    return call
