"""File locks that the kernel frees when a process dies, however it dies.

`flock` belongs to an open file, so two uses in one process do not share a lock, and a child that inherits
the file keeps it locked.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

FIRST_PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.02
SAY_AFTER_SECONDS = 2.0


class LockFile:
    """One open lock file. Its content is never read, and it is never removed: others may wait on it."""

    def __init__(self, path: Path, *, create: bool = True, owner: tuple[int, int] | None = None) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(path, flags | os.O_CREAT if create else flags, 0o600)
        if owner is not None and os.fstat(self._file).st_uid != owner[0]:
            os.fchown(self._file, *owner)

    @property
    def descriptor(self) -> int:
        return self._file

    def try_shared(self) -> bool:
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take it alone. When it fails, a shared lock held before is lost too."""
        return self._try(fcntl.LOCK_EX)

    def is_current(self) -> bool:
        """Is this still the file at its path? Somebody may have removed the folder and made it anew."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Free the lock, unless a child has inherited it. Closing twice does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def wait_until(condition: Callable[[], bool], patience: Patience) -> bool:
    """Ask until it holds or the patience ends; whether it holds. Pauses grow from 1 to 20 ms."""
    pause = FIRST_PAUSE_SECONDS
    while not condition():
        if not patience.lasts():
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    return True


class Patience:
    """How long to wait in all, and one line to say when it takes longer than a moment."""

    def __init__(self, seconds: float, *, say: Callable[[str], None], line: str) -> None:
        self._started = time.monotonic()
        self._seconds = seconds
        self._say: Callable[[str], None] | None = say
        self._line = line

    def lasts(self) -> bool:
        waited = time.monotonic() - self._started
        if self._say is not None and waited >= SAY_AFTER_SECONDS:
            self._say(self._line)
            self._say = None
        return waited < self._seconds
