"""Opening the HTTP door on an address, and closing it in good order."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Final

import anyio
import uvicorn

from weft.errors import Conflict, UsageError, WeftError
from weft.service import upkeep
from weft.service.opening import Store
from weft.service.projects import LoadedProject
from weft.web.app import build
from weft.web.door import Door
from weft.web.guard import is_loopback
from weft.web.protocol import HEAD_LIMIT, Protocol

KEEP_ALIVE: Final = timedelta(seconds=15)
"""How long a connection may stay open with nothing on it."""

LAST_ANSWERS: Final = timedelta(seconds=5)
"""How long requests may go on that are being answered when the door closes."""

BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Listening:
    """`address` is where the door is, without a slash at its end; `local` says that only this machine reaches it."""

    socket: socket.socket
    host: str
    address: str
    local: bool


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the command's, which ends more than this."""
        yield


@asynccontextmanager
async def listening_on(store: Store, host: str, port: int) -> AsyncIterator[Listening]:
    """Who connects from now on is heard once the door is open.

    Raises:
        UsageError: no such host, or one that others reach and no token for them.
        Conflict: the port is in use.
    """
    with await _bound(host, port) as bound:
        name, number = bound.getsockname()[:2]
        local = is_loopback(name)
        if not local and not any(each.revoked_at is None for each in await upkeep.every_token(store)):
            raise UsageError(
                f"others can reach {host}, and there is no token yet that would keep them out",
                hint="Make one with weft token mint NAME --right read, or leave --host out to serve this machine.",
            )
        yield Listening(bound, host, f"http://{_shown(name, host)}:{number}", local)


@asynccontextmanager
async def open_door(store: Store, served: Sequence[LoadedProject], listening: Listening) -> AsyncIterator[Door]:
    """Serve until the block is left; then open streams and long polls end at once, and other requests are answered."""
    door = Door(store, served, listening.local)
    server = _Server(
        uvicorn.Config(
            build(door, listening.host),
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=HEAD_LIMIT,
            timeout_keep_alive=int(KEEP_ALIVE.total_seconds()),
            timeout_graceful_shutdown=int(LAST_ANSWERS.total_seconds()),
        )
    )
    async with anyio.create_task_group() as group:
        group.start_soon(_serving, server, listening.socket)
        try:
            yield door
        finally:
            door.stop()
            server.should_exit = True


def _shown(bound: str, host: str) -> str:
    """The host of the address that is printed: one that can be opened."""
    if ip_address(bound.partition("%")[0]).is_unspecified:
        return socket.gethostname()
    return f"[{bound}]" if ":" in bound else host


async def _serving(server: _Server, listening: socket.socket) -> None:
    with anyio.CancelScope(shield=True):
        await server.serve([listening])
    if not server.should_exit:
        raise WeftError("the HTTP door has closed by itself")


async def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(f"--host {host!r} is no address and no name of this machine") from None
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _unbound(host, port, error) from None
    return listening


def _unbound(host: str, port: int, error: OSError) -> WeftError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(f"port {port} of {host} is in use by another process", hint="Choose another with --port.")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"--host {host} is no address of this machine")
    if error.errno in (errno.EACCES, errno.EPERM):
        return UsageError(f"port {port} of {host} may not be used by this user", hint="Choose one above 1023.")
    return WeftError(f"port {port} of {host} cannot be opened: {error.strerror}")

