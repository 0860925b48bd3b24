"""/openapi.json is complete and true. That each answer fits it is held in every test here (`described.py`)."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema_rs
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from starlette.routing import Route

from tests.cli.weft_process import Weft
from tests.web.described import API
from tests.web.house import TEXT, open_house
from weft.web.api.routes import ENDPOINTS, routes

EXAMPLES = 15


async def test_it_is_served_and_describes_every_route_and_no_other(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        assert (await house.client.get("/openapi.json")).json() == API
    described = {(method.upper(), path) for path, methods in API["paths"].items() for method in methods}
    served = {(method, each.path) for each in routes() for method in methods_of(each)}
    assert described == served
    names = [each.name for each in ENDPOINTS]
    assert len(names) == len(set(names))


def methods_of(route: Route) -> set[str]:
    return {method for method in route.methods or () if method != "HEAD"}


def test_each_reference_leads_somewhere_and_each_schema_is_one() -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if "$ref" in value else set()
            return own.union(*(references(each) for each in value.values()))
        return set().union(*map(references, value)) if isinstance(value, list | tuple) else set()

    schemas = API["components"]["schemas"]
    assert references(API) == {f"#/components/schemas/{name}" for name in schemas}
    for name in schemas:
        jsonschema_rs.Draft202012Validator({**schemas[name], "components": API["components"]})


async def test_whatever_the_description_allows_is_answered_as_it_says(weft: Weft) -> None:
    """Requests made from the description alone, right and wrong ones: none is a fault, each answer is as described."""
    async with open_house(weft.url, weft.folder) as house:
        await house.parked(TEXT)
        schema = schemathesis.openapi.from_dict(API)
        tried = await asyncio.to_thread(_try_all, schema, house.address)
        assert tried >= len(ENDPOINTS)


def _try_all(schema: Any, address: str) -> int:
    tried = 0
    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def ask(case: Any) -> None:
            nonlocal tried
            answer = case.call(base_url=address, headers={"connection": "close"})
            assert answer.status_code < 500, (case, answer.text)
            case.validate_response(
                answer,
                checks=[
                    schemathesis.checks.response_schema_conformance,
                    schemathesis.checks.status_code_conformance,
                    schemathesis.checks.content_type_conformance,
                ],
            )
            tried += 1

        ask()
    return tried
