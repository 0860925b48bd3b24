"""What a running server leaves on disk, and whether the process it names is really that server.

Reads only: nothing here starts, stops or repairs anything.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

PORT = 5432
PROC = Path("/proc/self/cwd")


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What `postmaster.pid` says. `status` is `starting`, `ready`, `stopping`, or empty before the first."""

    pid: int
    status: str


def pid_file(data: Path) -> Path:
    return data / "postmaster.pid"


def socket_file(folder: Path) -> Path:
    return folder / f".s.PGSQL.{PORT}"


def socket_lock(folder: Path) -> Path:
    return folder / f".s.PGSQL.{PORT}.lock"


def read(data: Path) -> Postmaster | None:
    """The server that says it serves `data`, or None: no such file, or nothing written in it yet."""
    try:
        lines = pid_file(data).read_text("utf-8", errors="replace").splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
        return None
    return Postmaster(abs(pid), lines[7].strip() if len(lines) > 7 else "")


def is_process(pid: int) -> bool:
    """Does the process exist? One that has ended and that nobody has reaped does not count."""
    if PROC.exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
        except (FileNotFoundError, ProcessLookupError):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def serves(pid: int, data: Path) -> bool:
    """Is the process a server on this very folder? Numbers are used again, so a number alone says nothing."""
    if not is_process(pid):
        return False
    if PROC.exists():
        try:
            return Path(f"/proc/{pid}/cwd").samefile(data)
        except OSError:
            return False
    # Without /proc (macOS), lsof tells where a process stands; a server stands in its data folder.
    ask = ["/usr/sbin/lsof", "-a", "-p", str(pid), "-d", "cwd", "-F", "n"]
    said = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    return any(line.startswith("n") and Path(line[1:]).samefile(data) for line in said.splitlines())


def listens(folder: Path) -> bool:
    """Does something take connections on the folder's socket?"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(socket_file(folder)))
        except OSError:
            return False
    return True
