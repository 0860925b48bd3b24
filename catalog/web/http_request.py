"""HttpRequest: one call to a web server."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from weft import ExecutionContext, Node, NodeError, NodeOutput, Port

if TYPE_CHECKING:
    import httpx

LARGEST = 16 * 1024 * 1024
"""Bytes of a response that are read; what a wire carries is limited further, by the runtime."""


class HttpRequest(Node):
    """Make an HTTP request. An answer of any status is an answer; no answer at all fails the node.

    `body` goes out as JSON. An answer that says it is a JSON object comes out as one, anything else as text.
    Redirects are followed. A POST or PATCH carries an `Idempotency-Key` that stays the same when a crash makes
    the node run again, so that a server that knows the header can drop the repeat.
    """

    label = "HTTP request"

    class Inputs:
        url: str
        body: dict[str, Any] = Port(required=False)
        headers: dict[str, str] = Port(required=False)
        method: str = Port("GET", options=["GET", "POST", "PUT", "PATCH", "DELETE"])

    class Outputs:
        status: int
        body: dict[str, Any] | str
        ok: bool = Port(description="Whether the status is one of 200 to 299.")

    async def run(self, ctx: ExecutionContext) -> None:
        url, method = ctx.inputs.get("url", str), ctx.inputs.get("method", str)
        headers = ctx.inputs.get_or("headers", {}, dict[str, str])
        options = {"json": ctx.inputs.raw("body")} if "body" in ctx.inputs else {}
        if method in ("POST", "PATCH") and "idempotency-key" not in {name.lower() for name in headers}:
            headers["Idempotency-Key"] = await ctx.run("idempotency key", lambda: str(uuid4()))
        status, body = await _call(ctx, method, url, headers=headers, **options)
        await ctx.pulse_downstream(NodeOutput(status=status, body=body, ok=200 <= status <= 299))


async def _call(ctx: ExecutionContext, method: str, url: str, **options: Any) -> tuple[int, dict[str, Any] | str]:
    import httpx

    try:
        urlsplit(url).port  # noqa: B018 - raises ValueError for one that is none
        async with ctx.http.stream(method, url, follow_redirects=True, **options) as response:
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > LARGEST:
                    raise NodeError(f"the answer of {_shown(url)} is larger than {LARGEST // 1024**2} MiB")
            return response.status_code, _read(response, bytes(content))
    except httpx.TimeoutException:
        raise NodeError(f"{_shown(url)} did not answer in time") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise NodeError(f"{method} {_shown(url)} failed: {str(error) or type(error).__name__}") from None


def _read(response: "httpx.Response", content: bytes) -> dict[str, Any] | str:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            value = json.loads(content)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
    try:
        return content.decode(response.charset_encoding or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _shown(url: str) -> str:
    """A URL without what may be secret in it: user, password and query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "the URL"
    return f"{parts.scheme}://{host}{port}{parts.path}" if host else f"`{parts.path[:80]}`"
