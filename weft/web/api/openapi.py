"""The description of the API, made from the table of its endpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from weft.web.api.schemas import COMPONENTS, Schema, ref
from weft.web.api.table import Endpoint, Parameter

_ALWAYS: Final = (400, 404, 408, 413, 414, 415, 421, 422, 431, 500, 503)
"""What any endpoint may refuse with: what does not fit HTTP, the address or the limits, and what is not there."""

_GUARDED: Final = (401, 403)
_PATH_PARTS: Final[Mapping[str, Schema]] = {
    "run": {"type": "string", "format": "uuid"},
    "token": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "tag": {"type": "string", "minLength": 1},
}


def description(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "weft",
            "version": "1",
            "description": "Runs, forms and webhooks of weft serve. On a loopback address no token is needed.",
        },
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parts = [_path_part(name) for name in re.findall(r"{(\w+)}", endpoint.path)]
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.says,
        "parameters": [
            *parts,
            *(_parameter(each, "query") for each in endpoint.query or ()),
            *(_parameter(each, "header") for each in endpoint.headers),
        ],
        "responses": {str(status): _answer(status, content) for status, content in endpoint.answers.items()},
    }
    errors = sorted({*_ALWAYS, *endpoint.errors, *(_GUARDED if endpoint.right else ())})
    found["responses"] |= {str(status): _answer(status, {"application/json": ref("Error")}) for status in errors}
    if endpoint.right is not None:
        found["security"] = [{}, {"token": []}]
        found["description"] = f"Needs a token with the right `{endpoint.right}` where one is needed."
    if endpoint.bodies:
        content = {kind: {"schema": schema} for kind, schema in endpoint.bodies.items()}
        found["requestBody"] = {"content": content, "required": not endpoint.body_may_be_empty}
    return found


def _path_part(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _PATH_PARTS[name]}


def _parameter(parameter: Parameter, where: str) -> dict[str, Any]:
    return {"name": parameter.name, "in": where, "description": parameter.says, "schema": parameter.schema}


def _answer(status: int, content: Mapping[str, Schema]) -> dict[str, Any]:
    said: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if content:
        said["content"] = {kind: {"schema": schema} for kind, schema in content.items()}
    return said
