"""What a body holds outside the event loop, and how it is let go: process groups, threads, the http client.

A firing that holds nothing has no `Held`. Not here: when a firing ends (`context.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import threading
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from weft.errors import NodeError

if TYPE_CHECKING:
    import httpx

R = TypeVar("R")

GRACE: Final = timedelta(milliseconds=100)
"""How long a thread that was told to stop may take before it counts as left behind, and a killed process."""


class Flag:
    """Set once, for good; `set` is for the event loop's own thread."""

    __slots__ = ("_event", "_set")

    def __init__(self) -> None:
        self._set = False
        self._event: asyncio.Event | None = None

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        if not self._set:
            if self._event is None:
                self._event = asyncio.Event()
            await self._event.wait()


class Held:
    """The processes and threads of one firing."""

    __slots__ = ("ended", "loop", "processes", "starts", "threads")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.starts: set[asyncio.Task[Process]] = set()
        self.processes: list[Process] = []
        self.threads: list[_Thread] = []
        self.ended = False

    async def start(self, program: str, *args: str, **options: Any) -> Process:
        """A process in a group of its own, as `ctx.subprocess` gives it."""
        # Apart from the body's task: a stop in the middle would leave a process that nobody knows.
        start = self.loop.create_task(_process(program, *args, **options))
        self.starts.add(start)
        start.add_done_callback(self._started)
        return await asyncio.shield(start)

    def _started(self, start: asyncio.Task[Process]) -> None:
        self.starts.discard(start)
        if not start.cancelled() and start.exception() is None:
            self.processes.append(start.result())
            if self.ended:
                _kill_group(start.result())

    def tell(self) -> None:
        """The firing was stopped: threads see it at their next look."""
        for thread in self.threads:
            thread.flag.set()

    async def call(self, fn: Callable[[Flag], R]) -> R:
        """The result of `fn` in a thread of its own, as `ctx.thread` gives it."""
        thread = _Thread(fn, self.loop)
        self.threads.append(thread)
        thread.start()
        try:
            result: R = await thread.result
        except asyncio.CancelledError:
            # Also where the body's own time-out, and no stop, ends the waiting.
            thread.flag.set()
            raise
        self.threads.remove(thread)
        return result

    async def let_go(self) -> list[str]:
        """Kill every process group, tell every thread; the names of the threads that go on nevertheless."""
        self.ended = True
        for process in self.processes:
            _kill_group(process)
        self.tell()
        running = [thread for thread in self.threads if not thread.ended.is_set()]
        await self._all(thread.ended.wait() for thread in running)
        if self.starts:
            await asyncio.wait(self.starts)
        await self._all(process.wait() for process in self.processes)
        return [thread.name for thread in running if not thread.ended.is_set()]

    async def _all(self, ends: Iterable[Coroutine[Any, Any, Any]]) -> None:
        """Wait for all of these, but not longer than the grace: a grandchild with a session of its own may
        hold a pipe open for ever."""
        tasks = [self.loop.create_task(end) for end in ends]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE.total_seconds())
            for task in late:
                task.cancel()


async def _process(program: str, *args: str, **options: Any) -> Process:
    return await asyncio.create_subprocess_exec(program, *args, **options, start_new_session=True)


def _kill_group(process: Process) -> None:
    # The group lives on when its first process is gone already.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


class _Thread:
    """One call in a thread of its own, which neither the loop nor the interpreter's end waits for."""

    def __init__(self, fn: Callable[[Flag], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.fn = fn
        self.flag = Flag()
        self.loop = loop
        self.result: asyncio.Future[Any] = loop.create_future()
        self.ended = Flag()
        self.name = getattr(fn, "__qualname__", None) or repr(fn)

    def start(self) -> None:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work,), name=self.name, daemon=True).start()

    def _work(self) -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = self.fn(self.flag)
        except Exception as error:
            # A future cannot carry a StopIteration.
            failure = error if not isinstance(error, StopIteration) else NodeError("the thread ran out of items")
        except BaseException as error:
            failure = NodeError(f"the thread ended with {type(error).__name__}: {error}")
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self._settle, result, failure)

    def _settle(self, result: Any, failure: BaseException | None) -> None:
        self.ended.set()
        if self.result.done():
            return
        if failure is None:
            self.result.set_result(result)
        else:
            self.result.set_exception(failure)


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def http_client() -> httpx.AsyncClient:
    """The client of the running event loop, made on first use."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None or client.is_closed:
        import httpx

        client = _clients[loop] = httpx.AsyncClient(timeout=httpx.Timeout(60, connect=10))
    return client


async def close_http_client() -> None:
    """Close the running loop's client, if there is one. For whoever ends the loop."""
    client = _clients.pop(asyncio.get_running_loop(), None)
    if client is not None:
        await client.aclose()
