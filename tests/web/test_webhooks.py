"""Webhooks: what reaches the run, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cli.weft_process import Weft
from tests.web.house import HOOK, NAP, House, error, open_house

FORM = {"content-type": "application/x-www-form-urlencoded"}


async def received(house: House, run: str) -> dict[str, Any]:
    await house.ended(run)
    [found] = [each["value"] for each in await house.events(run) if each["kind"] == "suspension_resolved"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        ({"json": {"a": [1, None, "ü"]}}, {"a": [1, None, "ü"]}),
        ({"content": "null", "headers": {"content-type": "application/json"}}, None),
        ({"content": '{"a": 1}', "headers": {"content-type": "application/ld+json; charset=utf-8"}}, {"a": 1}),
        ({"data": {"a": "1", "b": ["x", "ü&"]}}, {"a": "1", "b": ["x", "ü&"]}),
        ({"content": "plain text ü"}, "plain text ü"),
        ({"content": b"gr\xfc\xdfe", "headers": {"content-type": 'text/plain; charset="ISO-8859-1"'}}, "grüße"),
        ({"content": "<a>ü</a>", "headers": {"content-type": "application/xml"}}, "<a>ü</a>"),
        ({}, ""),
    ],
    ids=["json", "null", "+json", "form", "text", "latin-1", "xml", "nothing"],
)
async def test_json_form_fields_and_text_reach_the_run(weft: Weft, sent: dict[str, Any], body: Any) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(HOOK)
        answer = await house.client.post(path, **sent)
        assert (answer.status_code, answer.json()) == (202, {"received": True, "run": run})
        assert (await received(house, run))["body"] == body


async def test_headers_and_query_come_along_but_for_what_opens_something_elsewhere(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(HOOK)
        headers = [
            ("X-Signature", "abc"),
            ("X-Many", "1"),
            ("x-many", "2"),
            ("Authorization", "Bearer hush"),
            ("Cookie", "session=hush"),
            ("Proxy-Authorization", "Basic hush"),
            ("Origin", "https://elsewhere.example"),
        ]
        answer = await house.client.post(f"{path}?a=1&b=%C3%BC&a=2", headers=headers, content="x")
        assert answer.status_code == 202, "webhooks are for anybody who has their address"
        value = await received(house, run)
        assert value["query"] == {"a": "1,2", "b": "ü"}
        assert (value["headers"]["x-signature"], value["headers"]["x-many"]) == ("abc", "1, 2")
        assert "hush" not in json.dumps(await house.events(run))


async def test_the_first_request_counts_and_a_dead_webhook_says_why(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(HOOK)
        several = await asyncio.gather(*(house.client.post(path, json=n) for n in range(5)))
        codes = [each.status_code for each in several]
        assert sorted(codes) == [202] + [409] * 4
        assert (await received(house, run))["body"] == codes.index(202)

        run, path = await house.parked(HOOK)
        assert (await house.client.post(f"/api/v1/runs/{run}/stop")).status_code == 200
        dead = await house.client.post(path, json=1)
        assert dead.status_code == 410
        assert (error(dead)["reason"], error(dead)["status"]) == ("Cancelled by user", "cancelled")


async def test_what_does_not_fit_is_refused_and_the_webhook_stays_open(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(HOOK)
        text = {"content-type": "text/plain"}
        as_json = {"content-type": "application/json"}

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(60):
                yield b"x" * 65536

        deep = "[" * 5000 + "]" * 5000
        told = {
            "GET": await house.client.get(path),
            "PUT": await house.client.put(path, json=1),
            "a form's page": await house.client.get(path.replace("/w/", "/f/")),
            "large": await house.client.post(path, content="x" * 2_000_000, headers=text),
            "large in pieces": await house.client.post(path, content=pieces(), headers=text),
            "too large with its headers": await house.client.post(path, content="x" * 1_048_570, headers=text),
            "files": await house.client.post(path, files={"a": b"x"}),
            "packed": await house.client.post(path, content=b"x", headers={"content-encoding": "gzip"}),
            "no JSON": await house.client.post(path, content="{", headers=as_json),
            "no JSON at all": await house.client.post(path, content="", headers=as_json),
            "NaN": await house.client.post(path, content="NaN", headers=as_json),
            "not UTF-8": await house.client.post(path, content=b'"\xff"', headers=as_json),
            "a key twice": await house.client.post(path, content='{"a":1,"a":2}', headers=as_json),
            "nested deep": await house.client.post(path, content=deep, headers=as_json),
            "a huge number": await house.client.post(path, content="1" * 30, headers=as_json),
            "a number of digits": await house.client.post(path, content="1" * 5000, headers=as_json),
            "half a pair": await house.client.post(path, content='"\\ud800"', headers=as_json),
            "NUL": await house.client.post(path, content="a\0b", headers=text),
            "binary": await house.client.post(path, content=b"\xff\x00\xfe"),
            "a charset that is none": await house.client.post(
                path, content="x", headers={"content-type": "text/plain; charset=punycode"}
            ),
            "bad fields": await house.client.post(path, content="a=%ff", headers=FORM),
        }
        assert {what: answer.status_code for what, answer in told.items()} == {
            "GET": 405,
            "PUT": 405,
            "a form's page": 404,
            "large": 413,
            "large in pieces": 413,
            "too large with its headers": 422,
            "files": 415,
            "packed": 415,
            "no JSON": 400,
            "no JSON at all": 400,
            "NaN": 400,
            "not UTF-8": 400,
            "a key twice": 400,
            "nested deep": 400,
            "a huge number": 422,
            "a number of digits": 400,
            "half a pair": 422,
            "NUL": 422,
            "binary": 415,
            "a charset that is none": 415,
            "bad fields": 400,
        }
        assert told["GET"].headers["allow"] == "POST"
        assert all(error(told[what])["message"] for what in told if what != "a form's page")
        assert (await house.client.post(path, json="good")).status_code == 202
        assert (await received(house, run))["body"] == "good"


@pytest.mark.parametrize("token", ["x", "0" * 64, "%00", "a" * 63])
async def test_what_is_no_webhook_is_not_found(weft: Weft, token: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        assert error(await house.client.post(f"/w/{token}", json=1))["code"] == "not-found"


async def test_the_token_of_something_else_receives_nothing(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await house.start(NAP)
        [wait] = await house.waits(run)
        answer = await house.client.post(f"/w/{wait['token']}", json=1)
        assert answer.status_code == 404 and "of a timer" in error(answer)["message"]


async def test_fault_b42_a_request_at_the_moment_of_registering_is_delivered(weft: Weft) -> None:
    """Its address is known from the commit that registers it on, before the run has parked."""
    async with open_house(weft.url, weft.folder) as house:
        for _ in range(10):
            run = await house.start(HOOK)
            while not (waits := (await house.run(run))["why"]["waits"]):
                await asyncio.sleep(0)
            answer = await house.client.post(waits[0]["path"], json="at once")
            assert answer.status_code == 202
            assert (await received(house, run))["body"] == "at once"
            assert (await house.run(run))["status"] == "completed"
