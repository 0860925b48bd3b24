"""What no honest client sends, on raw sockets: each is refused with the right status, and the door stays open."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

import anyio
import pytest

from tests.cli.weft_process import Weft
from tests.web.house import TEXT, House, open_house

HOST = b"Host: 127.0.0.1\r\n"
FIELDS = b"Content-Type: application/x-www-form-urlencoded\r\n"


@asynccontextmanager
async def connected(house: House) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    at = urlsplit(house.address)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def status(reader: asyncio.StreamReader) -> int:
    """The status of the next answer; 0 where the connection just ends."""
    with anyio.fail_after(30):
        try:
            line = await reader.readline()
        except ConnectionError:
            return 0
    found = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n", line)
    assert found or line == b"", line
    return int(found[1]) if found else 0


async def sent(house: House, data: bytes) -> int:
    async with connected(house) as (reader, writer):
        writer.write(data)
        return await status(reader)


async def still_answers(house: House) -> bool:
    return await sent(house, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == 200


HEADS: dict[str, tuple[bytes, set[int]]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", {400}),
    "nothing said": (b"\r\n\r\n\r\n", {400}),
    "another protocol": (b"EHLO example\r\n\r\n", {400}),
    "HTTP/0.9": (b"GET /\r\n\r\n", {400}),
    "HTTP/2 by surprise": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 405, 421}),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", {400, 421}),
    "NUL in a header": (b"GET / HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n", {400}),
    "a header without a name": (b"GET / HTTP/1.1\r\n" + HOST + b": a\r\n\r\n", {400}),
    "a space before the colon": (b"GET / HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n", {400}),
    "NUL in the path": (b"GET /f/a\0b HTTP/1.1\r\n" + HOST + b"\r\n", {400}),
    "NUL spelled out": (b"GET /f/%00 HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "bad escapes": (b"GET /f/%zz%f HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "dots": (b"GET /static/../../../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "dots spelled out": (b"GET /static/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "backslashes": (b"GET /static/..\\..\\app.py HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "a whole address": (b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n", {404}),
    "no path": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", {404, 405}),
    "a tunnel": (b"CONNECT evil.example:443 HTTP/1.1\r\n" + HOST + b"\r\n", {404, 405}),
    "TRACE": (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", {405}),
    "a method of its own": (b"PWN /f/x HTTP/1.1\r\n" + HOST + b"\r\n", {405}),
    "another scheme's host": (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", {421}),
    "10,000 headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\r\n" * 10_000 + b"\r\n", {431}),
    "100,000 headers": (b"GET / HTTP/1.1\r\n" + HOST + b"X: 12345\r\n" * 100_000, {431}),
    "a header of 20 KB": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 20_000 + b"\r\n\r\n", {431}),
    "a header without an end": (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 200_000, {431}),
    "a long address": (b"GET /f/" + b"a" * 5_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {414}),
    "a long query": (b"GET /?" + b"a" * 5_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", {414}),
    "an address without an end": (b"GET /" + b"a" * 200_000, {431}),
    "a body of negative length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", {400}),
    "a body of no length": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: ten\r\n\r\n", {400}),
    "two lengths": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na", {400}),
    "an unknown coding": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", {400, 501}),
}


async def test_heads_that_no_honest_client_sends(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        for what, (data, right) in HEADS.items():
            assert await sent(house, data) in right, what
            assert await still_answers(house), what


async def test_bodies_that_no_honest_client_sends(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        post = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + FIELDS
        chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
        for what, data, right in (
            ("a length beyond all limits", post + b"Content-Length: 99999999999999\r\n\r\n", {413}),
            ("chunks without an end", chunked + (b"10000\r\n" + b"a" * 65536 + b"\r\n") * 100, {413}),
            ("a chunk of no size", chunked + b"zz\r\n", {400}),
            ("a chunk of negative size", chunked + b"-1\r\n", {400}),
            ("a chunk of all there is", chunked + b"f" * 30 + b"\r\n", {400}),
            ("both codings", post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", {400}),
            ("packed", post + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\na", {415}),
        ):
            assert await sent(house, data) in right, what
            assert await still_answers(house), what
        assert (await house.run(run))["status"] == "waiting"


async def test_a_smuggled_second_request_is_none(weft: Weft) -> None:
    """Where two lengths are said, what follows is not read as a request of its own that a proxy did not see."""
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        hidden = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + FIELDS + b"Content-Length: 6\r\n\r\ntext=x"
        first = b"POST /w/x HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        async with connected(house) as (reader, writer):
            writer.write(first + hidden)
            await status(reader)
            with anyio.fail_after(30):
                rest = await reader.read()
            assert b"The answer was taken" not in rest
        assert (await house.run(run))["status"] == "waiting"


async def test_a_body_that_breaks_off_answers_nothing(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        async with connected(house) as (_, writer):
            head = b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + FIELDS
            writer.write(head + b"Content-Length: 20\r\n\r\ntext=half")
            await writer.drain()
        assert await still_answers(house)
        assert (await house.run(run))["status"] == "waiting"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The door's patience, cut short."""
    for name in ("protocol.HEAD_TIME", "protocol.STALL_TIME", "reading.BODY_TIME"):
        monkeypatch.setattr(f"weft.web.{name}", timedelta(seconds=0.4))


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    for at in range(len(data)):
        if writer.is_closing():
            return
        writer.write(data[at : at + 1])
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET / HTTP/1.1\r\n" + HOST + b"X-a: b\r\n" * 100,
        b"POST /w/" + b"0" * 64 + b" HTTP/1.1\r\n" + HOST + b"Content-Le",
        b"\r\n" * 100,
    ],
    ids=["nothing", "a head", "half a head", "line ends"],
)
async def test_who_is_slow_to_ask_is_let_go(weft: Weft, impatient: None, data: bytes) -> None:
    async with open_house(weft.url, weft.folder) as house, connected(house) as (reader, writer):
        dripping = asyncio.create_task(drip(writer, data))
        assert await status(reader) in (408, 400)
        dripping.cancel()
        assert await still_answers(house)


async def test_who_is_slow_to_ask_a_second_time_is_let_go(weft: Weft, impatient: None) -> None:
    async with open_house(weft.url, weft.folder) as house, connected(house) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        assert await status(reader) == 200
        await reader.readuntil(b'{"alive":true}')
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await status(reader) == 408
        await reader.read()


async def test_who_sends_half_of_the_next_request_along_is_let_go(weft: Weft, impatient: None) -> None:
    async with open_house(weft.url, weft.folder) as house, connected(house) as (reader, writer):
        writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nGET /hea")
        assert await status(reader) == 200
        await reader.readuntil(b'{"alive":true}')
        assert await status(reader) == 408


async def test_who_is_slow_to_send_a_body_is_let_go(weft: Weft, impatient: None) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        async with connected(house) as (reader, writer):
            writer.write(b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + FIELDS + b"Content-Length: 500\r\n\r\n")
            dripping = asyncio.create_task(drip(writer, b"text=" + b"a" * 400))
            assert await status(reader) == 408
            dripping.cancel()
        assert (await house.run(run))["status"] == "waiting"


async def test_who_reads_nothing_is_let_go(weft: Weft, impatient: None) -> None:
    async with open_house(weft.url, weft.folder) as house:
        at = urlsplit(house.address)
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, (at.hostname, at.port))
        request = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
        with anyio.fail_after(60), pytest.raises(ConnectionError):
            while True:
                await loop.sock_sendall(deaf, request)
                await asyncio.sleep(0)
        deaf.close()
        assert await still_answers(house)


async def test_more_connections_than_there_may_be_are_told(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.web.protocol.MOST_CONNECTIONS", 3)
    async with open_house(weft.url, weft.folder) as house:
        async with connected(house) as one, connected(house) as two, connected(house) as three:
            for reader, writer in (one, two, three):
                writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
                assert await status(reader) == 200
            async with connected(house) as (reader, _):
                assert await status(reader) == 503
        while not await still_answers(house):
            await asyncio.sleep(0.01)


async def test_pipelined_requests_are_answered_in_order(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house, connected(house) as (reader, writer):
        writer.write((b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") + (b"GET /nothing HTTP/1.1\r\n" + HOST + b"\r\n"))
        assert await status(reader) == 200
        await reader.readuntil(b'{"alive":true}')
        assert await status(reader) == 404
