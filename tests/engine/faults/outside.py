"""The world outside: a server that counts how often each effect was had, and gives every visit a number of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

REFUSALS = 2
"""How often an effect that is called flaky is refused before it is had."""


@dataclass
class Outside:
    """`address` is `host:port`; `visits` counts by effect, `RUN/NODE…`."""

    address: str = ""
    visits: Counter[str] = field(default_factory=Counter)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1000))

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Outside]:
        outside = cls()
        server = await asyncio.start_server(outside._visited, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        outside.address = f"{host}:{port}"
        try:
            yield outside
        finally:
            server.close()

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            effect = request.split(b" ")[1].decode().lstrip("/")
            self.visits[effect] += 1
            refused = effect.endswith("-flaky") and self.visits[effect] <= REFUSALS
            status = "503 Not now" if refused else "200 OK"
            writer.write(f"HTTP/1.0 {status}\r\n\r\n{next(self.numbers)}".encode())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
