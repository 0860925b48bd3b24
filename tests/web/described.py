"""Holds every answer that a test gets to what /openapi.json says of it: the status is there, and the body fits."""

from __future__ import annotations

import re
from typing import Any

import httpx
import jsonschema_rs

from weft.web.api.openapi import description
from weft.web.api.routes import ENDPOINTS

API = description(ENDPOINTS)
_PATTERNS = {re.compile(re.sub(r"{\w+}", "[^/]+", path)): path for path in API["paths"]}


def operation(method: str, path: str) -> dict[str, Any] | None:
    """What is said of a request; None where nothing is."""
    for pattern, template in _PATTERNS.items():
        if pattern.fullmatch(path):
            found: dict[str, Any] | None = API["paths"][template].get("get" if method == "HEAD" else method.lower())
            return found
    return None


async def as_described(answer: httpx.Response) -> None:
    said = operation(answer.request.method, answer.request.url.path)
    if said is None:
        return
    told = said["responses"].get(str(answer.status_code))
    assert told is not None, f"{answer.request.method} {answer.request.url.path} does not tell of {answer.status_code}"
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind != "application/json" or answer.request.method == "HEAD":
        assert kind in told.get("content", {"": None}) or answer.request.method == "HEAD", kind
        return
    await answer.aread()
    schema = {**told["content"][kind]["schema"], "components": API["components"]}
    jsonschema_rs.Draft202012Validator(schema).validate(answer.json())
