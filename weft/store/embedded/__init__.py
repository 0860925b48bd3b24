"""The embedded PostgreSQL: one server a user, there while somebody uses it.

`embedded_server()` is what the rest of weft calls. `server.py` holds the life cycle, `folder.py` the data
folder and the account that owns it, `cluster.py` makes what PostgreSQL keeps in it, `tools.py` finds
PostgreSQL's programs and `programs.py` runs them, `locks.py` has the file locks, `postmaster.py` reads what
a running server leaves on disk. Nothing here speaks SQL: that begins with the address it hands out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio import to_thread

from weft.errors import EmbeddedServerFailed
from weft.store.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer", "embedded_server"]

WATCH_EVERY_SECONDS = 1.0


@asynccontextmanager
async def embedded_server(folder: Path | None = None, *, tools: Path | None = None) -> AsyncIterator[str]:
    """The address (a PostgreSQL URL) of a running server whose data is in `folder`, kept running meanwhile.

    Without a folder, the user's own: see `folder.default_folder`. `tools` is the folder of PostgreSQL's
    programs, where neither the installed package nor the system's is wanted. A server that is killed
    meanwhile is started again. The last process that leaves stops it. Raises EmbeddedServerFailed.
    """
    server = EmbeddedServer(folder, tools=tools)
    try:
        if not server.attach_running():
            await to_thread.run_sync(server.attach)
        watch = asyncio.create_task(_revive(server))
        try:
            yield server.dsn
        finally:
            watch.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([watch])
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(server.leave)


async def _revive(server: EmbeddedServer) -> None:
    """Start the server again when it was killed: no other process would, while this one holds on to it."""
    while True:
        await asyncio.sleep(WATCH_EVERY_SECONDS)
        if not server.is_alive():
            # Whoever needs the database meets the reason there; the next round tries again.
            with suppress(EmbeddedServerFailed):
                await to_thread.run_sync(server.attach)
