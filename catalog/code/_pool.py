"""Processes for ExecPython, kept warm: who gets one, how a call goes, how one is ended.

Each running event loop has its own pool. A process serves one call at a time and then the next one; it is killed, never
reused, when a call is cancelled in the middle. What runs inside is `_child.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from weft import NodeError

LIMIT: Final = 256
"""Processes at once. Calls beyond that wait; a limit below it would let a few endless loops stop everybody else."""

KEPT: Final = 8
"""Idle processes that are kept for the next call."""

PATIENCE: Final = timedelta(milliseconds=10)
"""How long nothing may have come free before one more process is started than there are cores."""

Log = Callable[[str, str], Awaitable[None]]


class CodeFailed(NodeError):
    """The code raised, does not compile, or returned what is not JSON."""

    def __init__(self, message: str, type_name: str, traceback: str | None) -> None:
        super().__init__(message)
        self.type_name = type_name
        self.traceback = traceback
        """Of the author's own frames, or None where nothing was raised."""


class ProcessDied(NodeError):
    """The process of the code ended in the middle of it."""


_life: list[int] = []
"""The pipe whose closing tells every child that this process is gone: [read end, write end]."""


class PythonProcess:
    """One child. `call` is for one caller at a time; after an exception out of it, `kill`."""

    def __init__(self) -> None:
        if not _life:
            _life.extend(os.pipe())
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._received = bytearray()
        child = Path(__file__).with_name("_child.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", child, str(theirs.fileno()), str(_life[0])],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what is written past `print` must not mix with what a command prints
                pass_fds=(theirs.fileno(), _life[0]),
                start_new_session=True,
            )
        self._greeting = _frame((sys.path,))
        self.retired = False

    @property
    def pid(self) -> int:
        return self._process.pid

    async def call(self, code: str, inputs: dict[str, Any], log: Log) -> Any:
        """What the code returns for these inputs; every line it prints goes to `log` as (level, line)."""
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._socket, self._greeting + _frame((code, inputs)))
            self._greeting = b""
            while True:
                match await self._receive(loop):
                    case ("log", level, line):
                        await log(level, line)
                    case ("done", value, retired):
                        self.retired = retired
                        return value
                    case ("fail", message, type_name, traceback, retired):
                        self.retired = retired
                        raise CodeFailed(message, type_name, traceback)
        except (ConnectionError, EOFError):
            raise await self._epitaph() from None

    async def _receive(self, loop: asyncio.AbstractEventLoop) -> Any:
        held = self._received
        while len(held) < 4 or len(held) < (size := 4 + int.from_bytes(held[:4], "little")):
            part = await loop.sock_recv(self._socket, 1 << 18)
            if not part:
                raise EOFError
            held += part
        frame = bytes(held[4:size])
        del held[:size]
        return marshal.loads(frame)

    async def _epitaph(self) -> ProcessDied:
        self._end_group()
        status = await anyio.to_thread.run_sync(self._process.wait)
        if status >= 0:
            return ProcessDied(f"the code ended its process, with the exit status {status}")
        name = signal.Signals(-status).name
        hint = "perhaps the machine ran out of memory" if name == "SIGKILL" else None
        return ProcessDied(f"the process of the code was ended by {name}", hint=hint)

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process and whatever it started, at once. Nobody waits for its exit status to be collected."""
        self._socket.close()
        if self._process.returncode is None:
            self._end_group()
        _collect(self._process)

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def _collect(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        asyncio.get_running_loop().call_later(0.01, _collect, process)


def _frame(message: tuple[Any, ...]) -> bytes:
    body = marshal.dumps(message)
    return len(body).to_bytes(4, "little") + body


class Pool:
    """The processes of one event loop."""

    def __init__(self) -> None:
        self._idle: list[PythonProcess] = []
        self._count = 0
        self._turn = anyio.Lock()
        self._freed = anyio.Event()
        self._moved = 0.0
        """When a process last came free or was started, on the monotonic clock."""

    @contextlib.asynccontextmanager
    async def process(self) -> AsyncIterator[PythonProcess]:
        """A process for one call. Left by anything but its answer (a cancel above all), the process is killed."""
        taken = await self._take()
        try:
            yield taken
        except CodeFailed:
            self._give_back(taken)
            raise
        except BaseException:
            self._drop(taken)
            raise
        self._give_back(taken)

    async def _take(self) -> PythonProcess:
        # The lock is fair: whoever came first watches, the others stand behind.
        async with self._turn:
            while True:
                while self._idle:
                    taken = self._idle.pop()
                    if taken.alive():
                        return taken
                    self._drop(taken)
                if self._may_grow():
                    taken = PythonProcess()
                    self._count += 1
                    self._moved = time.monotonic()
                    return taken
                self._freed = anyio.Event()
                with anyio.move_on_after(PATIENCE.total_seconds()):
                    await self._freed.wait()

    def _may_grow(self) -> bool:
        """Short calls share a few processes; where nothing comes free, long ones are in the way and room is made."""
        if self._count < (os.cpu_count() or 1):
            return True
        return self._count < LIMIT and time.monotonic() - self._moved >= PATIENCE.total_seconds()

    def _give_back(self, process: PythonProcess) -> None:
        if process.retired or len(self._idle) >= KEPT:
            self._drop(process)
            return
        self._idle.append(process)
        self._moved = time.monotonic()
        self._freed.set()

    def _drop(self, process: PythonProcess) -> None:
        self._count -= 1
        process.kill()
        self._freed.set()

    def close(self) -> None:
        """For a loop that has ended: the idle processes go, the others went with the calls they served."""
        for process in self._idle:
            process.kill()


_pools: dict[asyncio.AbstractEventLoop, Pool] = {}


def pool() -> Pool:
    """The pool of the running loop."""
    loop = asyncio.get_running_loop()
    found = _pools.get(loop)
    if found is None:
        for ended in [each for each in _pools if each.is_closed()]:
            _pools.pop(ended).close()
        found = _pools[loop] = Pool()
    return found
