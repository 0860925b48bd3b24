"""The points at which a fault may strike, and how a process finds out that it is at one.

Two kinds, both found by a first run that nothing happens to: each suspension of a coroutine of the engine (an await
that really waits), just after it has let go and just before it goes on; and each statement on its way to the database,
before it is passed on and after the answer has been given. Nothing in weft knows of this: awaits are seen by a task
factory, statements by the network that they go through.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from types import coroutine
from typing import Any, NamedTuple

ENGINE = f"{os.sep}weft{os.sep}engine{os.sep}"


class Point(NamedTuple):
    """The `nth` time (from 1) that a process comes to a place. `kind` is await or statement, `moment` before or
    after: of going on, of the statement."""

    kind: str
    place: str
    moment: str
    nth: int

    def __str__(self) -> str:
        return "|".join((self.kind, self.place, self.moment, str(self.nth)))

    @classmethod
    def read(cls, text: str) -> Point:
        kind, rest = text.split("|", 1)
        place, moment, nth = rest.rsplit("|", 2)
        return cls(kind, place, moment, int(nth))


class Counting:
    """Numbers what comes by once it has begun, and tells `reached` when it is the point looked for."""

    begun = False

    def __init__(self, looked_for: Point | None, reached: Callable[[], None], seen: Callable[[Point], None]) -> None:
        self._looked_for = looked_for
        self._reached = reached
        self._seen = seen
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def at(self, kind: str, place: str, moment: str) -> bool:
        if not self.begun:
            return False
        self._counts[kind, place, moment] += 1
        point = Point(kind, place, moment, self._counts[kind, place, moment])
        self._seen(point)
        if point != self._looked_for:
            return False
        self._reached()
        return True


# --- awaits -----------------------------------------------------------------------------------------------


def watch_awaits(loop: asyncio.AbstractEventLoop, counting: Counting) -> None:
    """From now on every task of the loop is watched."""

    def make(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_watched(coro, counting), loop=loop, **options)

    loop.set_task_factory(make)


async def _watched(coro: Coroutine[Any, Any, Any], counting: Counting) -> Any:
    return await _driven(coro, counting)


@coroutine
def _driven(coro: Coroutine[Any, Any, Any], counting: Counting) -> Generator[Any, Any, Any]:
    resume: Callable[[], Any] = lambda: coro.send(None)  # noqa: E731 - it is replaced in each turn
    while True:
        try:
            waits_for = resume()
        except StopIteration as over:
            return over.value
        place = _place(coro)
        if place is not None:
            counting.at("await", place, "after")
        try:
            sent = yield waits_for
        except BaseException as error:
            resume = lambda error=error: coro.throw(error)  # noqa: E731
        else:
            resume = lambda sent=sent: coro.send(sent)  # noqa: E731
        if place is not None:
            counting.at("await", place, "before")


def _place(coro: Any) -> str | None:
    """The innermost place in the engine at which the coroutine has stopped; not where all that is tried again stops."""
    found = None
    while coro is not None:
        frame = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
        if frame is not None and ENGINE in (name := frame.f_code.co_filename) and not name.endswith("retrying.py"):
            found = f"{Path(name).name}:{frame.f_lineno} {frame.f_code.co_name}"
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
    return found


# --- what the process itself does at its point ------------------------------------------------------------


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def freeze() -> None:
    """Until somebody sends SIGCONT."""
    print("reached", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def pause() -> None:
    """Until somebody has done something to the database and writes a line."""
    print("reached", flush=True)
    sys.stdin.readline()


def nothing() -> None:
    """The point is only passed."""


ACTS: dict[str, Callable[[], None]] = {"kill": kill, "freeze": freeze, "pause": pause, "": nothing}
