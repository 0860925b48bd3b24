"""What every request passes before anything looks at it, and the headers that every answer carries.

**Host.** On a loopback address anybody's page could have its name point here (DNS rebinding), and nobody needs a
token: only names of this machine are served. Elsewhere a token decides.

**Origin.** Browsers say with each POST which page it comes from: one from another page than ours is refused, and so is
one that hides it. That is the protection against forged submissions; there are no cookies, and an answer needs its
form's own token besides. Programs send no Origin. Webhooks are for anybody who has their address, pages too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Scope, Send

from weft.web.refusals import Refused

TARGET_LIMIT: Final = 4096
"""Bytes of path and query."""

HEADERS_LIMIT: Final = 16 * 1024
MOST_HEADERS: Final = 100

_READING: Final = ("GET", "HEAD", "OPTIONS")

_HEADERS: Final = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Addresses hold tokens. Not `no-referrer`, under which a browser hides the origin of our own forms too.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-robots-tag", b"noindex"),
]


@dataclass(frozen=True, slots=True)
class Guard:
    """`local`: served on a loopback address, without a token; `host` is what it is bound to."""

    local: bool
    host: str

    def check(self, scope: Scope) -> None:
        """
        Raises:
            Refused: 400, 403, 414, 415, 421 or 431, all of which end the connection.
        """
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_LIMIT:
            raise _closing(414, "target-too-long", f"the address is longer than {TARGET_LIMIT:,} bytes")
        if len(headers) > MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > HEADERS_LIMIT:
            most = f"{MOST_HEADERS} headers or {HEADERS_LIMIT:,} bytes of them"
            raise _closing(431, "headers-too-large", f"more than {most}")
        if _one(headers, b"content-length") and _one(headers, b"transfer-encoding"):
            raise _closing(400, "two-lengths", "a body has one length: this one is told in two ways")
        host = _one(headers, b"host")
        if self.local and not self._is_ours(host):
            raise _closing(421, "host", "this host is not served here", "Use the address that weft serve printed.")
        if scope["method"] not in _READING and not scope["path"].startswith("/w/"):
            self._check_origin(headers, host)
        if any(value.strip().lower() not in (b"", b"identity") for value in _all(headers, b"content-encoding")):
            raise _closing(415, "encoding", "a body is taken as it is, not compressed")

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host)
        return name in ("localhost", self.host.lower()) or is_loopback(name)

    @staticmethod
    def _check_origin(headers: list[tuple[bytes, bytes]], host: str) -> None:
        origins = list(_all(headers, b"origin"))
        foreign = any(origin.decode("latin-1").lower().partition("://")[2] != host for origin in origins)
        site = _one(headers, b"sec-fetch-site")
        if foreign or site not in ("", "same-origin", "none"):
            raise _closing(403, "origin", "this was sent by a page of another site", "Open the form itself.")


def is_loopback(host: str) -> bool:
    """Whether an address, or the name `localhost`, is this machine itself alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _all(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> Iterable[bytes]:
    return (value for each, value in headers if each == name)


def _one(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """The header in lower case; one that stands there twice is as good as a wrong one."""
    return ",".join(value.decode("latin-1").strip().lower() for value in _all(headers, name))


def _closing(status: int, code: str, message: str, hint: str | None = None) -> Refused:
    return Refused(status, code, message, hint, {"connection": "close"})


def with_headers(send: Send) -> Send:
    """Sends with the headers that every answer carries."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [*message.get("headers", ())]
            kept = [] if any(name == b"cache-control" for name, _ in given) else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*given, *_HEADERS, *kept]}
        await send(message)

    return sending
