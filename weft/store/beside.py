"""Work that goes on beside a block of code and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs `work` until the block ends, then cancels it and waits for it.

    Unlike a task group it passes the block's own exception on as it is. For work that goes on for ever by
    itself: what it raises is a fault of the program, and is raised when the block ends well.
    """
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
    if not task.cancelled():
        task.result()
