import socket
import threading

import anyio.to_thread
import pytest

from catalog.web.http_request import LARGEST, HttpRequest


async def test_a_json_object_comes_out_as_one(rig):
    url = rig.respond("GET", "/users/7", json={"name": "Zoë"})
    outcome = await rig.run(HttpRequest, {"url": url})
    assert outcome.outputs == {"status": 200, "body": {"name": "Zoë"}, "ok": True}


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ({"text": "plain"}, "plain"),
        ({"text": '{"a": 1}'}, '{"a": 1}'),
        ({"json": [1, 2]}, "[1, 2]"),
        ({"text": "{broken", "headers": {"content-type": "application/json"}}, "{broken"),
        ({"text": '{"a":1}', "headers": {"content-type": "application/problem+json; charset=utf-8"}}, {"a": 1}),
        ({}, ""),
    ],
)
async def test_anything_else_comes_out_as_text(rig, answer, body):
    url = rig.respond("GET", "/", **answer)
    assert (await rig.run(HttpRequest, {"url": url})).outputs["body"] == body


@pytest.mark.parametrize(("status", "ok"), [(201, True), (204, True), (404, False), (500, False)])
async def test_any_status_is_an_answer(rig, status, ok):
    url = rig.respond("GET", "/", status=status)
    outcome = await rig.run(HttpRequest, {"url": url})
    assert outcome.outputs == {"status": status, "body": "", "ok": ok}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_sends_method_headers_and_a_json_body(rig, method):
    url = rig.respond(method, "/orders", json={})
    inputs = {"url": f"{url}?a=b%20c", "method": method, "headers": {"X-Shop": "7"}, "body": {"n": [1, None]}}
    outcome = await rig.run(HttpRequest, inputs)
    assert outcome.failed is None
    (request,) = rig.requests
    assert (request.method, request.path, request.query) == (method, "/orders", "a=b%20c")
    assert request.headers["x-shop"] == "7"
    assert request.headers["content-type"] == "application/json"
    assert request.json() == {"n": [1, None]}


async def test_without_a_body_none_is_sent(rig):
    url = rig.respond("GET", "/", json={})
    await rig.run(HttpRequest, {"url": url})
    assert rig.requests[0].body == b""
    assert "content-type" not in rig.requests[0].headers
    assert "idempotency-key" not in rig.requests[0].headers


async def test_redirects_are_followed(rig):
    rig.respond("GET", "/new", json={"here": True})
    url = rig.respond("GET", "/old", status=302, headers={"location": "/new"})
    assert (await rig.run(HttpRequest, {"url": url})).outputs["body"] == {"here": True}


async def test_a_repeat_after_a_crash_carries_the_same_key(rig):
    url = rig.respond("POST", "/orders", json={"id": 1})
    rig.crash_after(2)  # the key is saved, the answer is emitted and the process dies
    outcome = await rig.run(HttpRequest, {"url": url, "method": "POST", "body": {}})
    assert outcome.attempts == 2
    keys = [request.headers["idempotency-key"] for request in rig.requests]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert outcome.outputs["body"] == {"id": 1}


async def test_two_requests_carry_two_keys_and_an_own_one_is_kept(rig):
    url = rig.respond("POST", "/", json={})
    for headers in ({}, {}, {"idempotency-KEY": "mine"}):
        await rig.run(HttpRequest, {"url": url, "method": "POST", "headers": headers})
    first, second, own = (request.headers["idempotency-key"] for request in rig.requests)
    assert first != second
    assert own == "mine"


async def test_a_method_that_is_none_of_the_options_fails(rig):
    outcome = await rig.run(HttpRequest, {"url": "http://127.0.0.1/", "method": "BREW"})
    assert "the input `method`" in outcome.failed.message
    assert '`"GET"`' in outcome.failed.message


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("example.org/path", "protocol"),
        ("ftp://example.org", "protocol"),
        ("http://[broken", "failed"),
        ("http://127.0.0.1:99999/", "failed"),
        ("", "protocol"),
    ],
)
async def test_a_url_that_is_none_fails_saying_so(rig, url, said):
    outcome = await rig.run(HttpRequest, {"url": url})
    assert outcome.failed.type == "NodeError"
    assert said in outcome.failed.message


async def test_a_header_that_http_cannot_carry_fails(rig):
    for value in ("two\r\nlines", "snow\u2603"):
        outcome = await rig.run(HttpRequest, {"url": f"{rig.url}/", "headers": {"X-A": value}})
        assert outcome.failed.type == "NodeError"


async def test_no_answer_fails_without_telling_secrets(rig):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        url = f"http://user:pa55word@127.0.0.1:{port}/path?token=s3cret"
        outcome = await rig.run(HttpRequest, {"url": url})
    assert outcome.failed.message.startswith(f"GET http://127.0.0.1:{port}/path failed: ")
    assert "s3cret" not in str(outcome.failed)
    assert "pa55word" not in str(outcome.failed)
    assert outcome.closed == ["status", "body", "ok"]


async def test_an_answer_too_large_is_refused_before_it_is_read_whole(rig):
    url = rig.respond("GET", "/huge", text="x" * (LARGEST + 1))
    outcome = await rig.run(HttpRequest, {"url": url})
    assert outcome.failed.message == f"the answer of {url} is larger than 16 MiB"


async def test_a_stop_ends_the_waiting(rig):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        task = rig.start(HttpRequest, {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"})
        connected = threading.Event()

        def accept() -> None:
            silent.accept()[0].recv(1)
            connected.set()

        await anyio.to_thread.run_sync(accept)
        assert connected.is_set()
        rig.cancel()
        outcome = await task
    assert outcome.cancelled
    assert outcome.outputs == {}
