"""HTTP on one connection, with the limits that uvicorn leaves to others: how long the head of a request may take, how
many connections there may be, and the right word for a head that is too large."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_TIME: Final = timedelta(seconds=10)
"""How long a client may take to send the head of a request, from the moment that it connects or begins it."""

STALL_TIME: Final = timedelta(seconds=30)
"""How long a client may read nothing of an answer that waits to be sent."""

MOST_CONNECTIONS: Final = 500
HEAD_LIMIT: Final = 64 * 1024
"""Bytes of a head that are read at all; what of them is taken is the guard's."""

_TEXTS: Final = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Protocol(H11Protocol):
    _head: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._end(503, "too-many", "too many connections")
            return
        self._head = self._later(HEAD_TIME, self._too_slow)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget_head()
        elif self._head is None and not self.transport.is_closing():
            self._head = self._later(HEAD_TIME, self._too_slow)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # What of a next request is here already has been read by now; an idle connection is uvicorn's.
        if self.conn.trailing_data[0] and self._head is None and self.cycle.response_complete:
            self._head = self._later(HEAD_TIME, self._too_slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self._later(STALL_TIME, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        self._forget_stall()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        hinted = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if hinted == 431:
            self._end(431, "headers-too-large", "the head of the request is too large")
        else:
            self._end(400, "not-http", "this is not HTTP")

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _forget_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _later(self, time: timedelta, what: Callable[[], None]) -> asyncio.TimerHandle:
        return self.loop.call_later(time.total_seconds(), what)

    def _too_slow(self) -> None:
        self._head = None
        if not self.transport.is_closing():
            self._end(408, "too-slow", "the request did not come in time")

    def _end(self, status: int, code: str, message: str) -> None:
        body = f'{{"error":{{"code":"{code}","message":"{message}"}}}}'
        lines = (
            f"HTTP/1.1 {status} {_TEXTS[status]}",
            "content-type: application/json",
            f"content-length: {len(body)}",
            "connection: close",
            "",
            body,
        )
        self._forget_head()
        self.transport.write("\r\n".join(lines).encode("ascii"))
        self.transport.close()

