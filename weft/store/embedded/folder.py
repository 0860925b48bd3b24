"""The data folder: where it is, who owns it, and whether it can work at all.

    <folder>/users.lock     shared by every process that uses the server
    <folder>/start.lock     held by the one that starts it
    <folder>/data           PostgreSQL's own folder
    <folder>/server.log     what the server says
    <folder>/.s.PGSQL.5432  its socket
    <folder>/tools-…        a copy of its programs, where its account cannot reach the installed ones

PostgreSQL refuses to run as root. As root, the folder belongs to an unprivileged account that is there
already, and everything that runs in it runs as that account. Folders above it are never changed.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weft.errors import EmbeddedServerFailed
from weft.store.embedded.postmaster import socket_file

ROOT_FOLDER = Path("/var/lib/weft")
SERVER_ACCOUNTS = ("postgres", "nobody")
USERS_LOCK = "users.lock"
START_LOCK = "start.lock"
# sockaddr_un has 108 bytes on Linux and 104 on the BSDs, the last of them a zero.
LONGEST_SOCKET_PATH = 107 if sys.platform == "linux" else 103
# Clients split a socket's path at commas, and the programs hand paths to a shell in double quotes.
IMPOSSIBLE = ',"$`\\\n'
ELSEWHERE = "Name another folder with WEFT_DATA_FOLDER, or a server with --database-url."


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server, when that is not the calling process itself."""

    name: str
    uid: int
    gid: int


def data_of(folder: Path) -> Path:
    return folder / "data"


def log_of(folder: Path) -> Path:
    return folder / "server.log"


def default_folder(major: int) -> Path:
    """The calling user's folder for servers of one major version."""
    if os.geteuid() == 0:
        return ROOT_FOLDER / f"pg{major}"
    from platformdirs import user_data_path

    return user_data_path("weft", appauthor=False) / f"pg{major}"


def prepare(folder: Path) -> Account | None:
    """Make the folder if it is not there; the account that runs a server in it, None for the caller itself.

    Raises EmbeddedServerFailed for a folder that cannot work.
    """
    length = len(os.fsencode(socket_file(folder)))
    if length > LONGEST_SOCKET_PATH:
        raise EmbeddedServerFailed(
            f"The data folder {folder} has too long a path for a socket: "
            f"{length} bytes with the socket's name, where {LONGEST_SOCKET_PATH} are possible.",
            hint=ELSEWHERE,
        )
    if impossible := [character for character in IMPOSSIBLE if character in os.fspath(folder)]:
        raise EmbeddedServerFailed(
            f"The data folder {folder} has {impossible[0]!r} in its path, which PostgreSQL's programs cannot take.",
            hint=ELSEWHERE,
        )
    try:
        _make_parents(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        inside = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise refused(folder, error) from error
    if inside and USERS_LOCK not in inside:
        raise EmbeddedServerFailed(
            f"{folder} is to be the data folder, but it holds other files ({inside[0]}, …).", hint=ELSEWHERE
        )
    if os.geteuid() == 0:
        return _hand_over(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise refused(folder, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return None


def _make_parents(folder: Path) -> None:
    """The missing folders above it. Root's are open to enter whatever the umask is: another account must."""
    missing = [parent for parent in folder.parents if not parent.exists()]
    for parent in reversed(missing):
        with suppress(FileExistsError):
            parent.mkdir()
            if os.geteuid() == 0:
                parent.chmod(0o755)


def refused(folder: Path, error: OSError) -> EmbeddedServerFailed:
    """The error for a folder that the system does not let us use."""
    if error.errno == errno.ENOSPC:
        return EmbeddedServerFailed(
            f"The disk is full: nothing can be written to {folder}.", hint=f"Free some space. {ELSEWHERE}"
        )
    return EmbeddedServerFailed(f"The data folder {folder} cannot be used: {error.strerror or error}.", hint=ELSEWHERE)


def failed(folder: Path, what: str, said: str) -> EmbeddedServerFailed:
    """The error for a program that failed: `what`, and the line that tells why from all that it `said`."""
    if os.strerror(errno.ENOSPC) in said:
        return refused(folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FATAL|PANIC|error", line)]
    reason = (telling or lines or ["it gives no reason"])[-1]
    reason = re.sub(r"^.*(FATAL|PANIC|error): +", "", reason)
    return EmbeddedServerFailed(f"{what} in {folder}: {reason}", hint=f"See {log_of(folder)}. {ELSEWHERE}")


def _hand_over(folder: Path) -> Account:
    """Root's part: the account that owns the folder, or will from now on."""
    owner = folder.stat()
    if owner.st_uid != 0:
        return Account(_name_of(owner.st_uid), owner.st_uid, owner.st_gid)
    for name in SERVER_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        account = Account(name, entry.pw_uid, entry.pw_gid)
        try:
            os.chown(folder, account.uid, account.gid)
        except OSError as error:
            raise refused(folder, error) from error
        check_reach(folder, account)
        return account
    raise EmbeddedServerFailed(
        f"PostgreSQL does not run as root, and there is no account {' or '.join(SERVER_ACCOUNTS)} to run it.",
        hint="Run weft as an ordinary user, or name a server with --database-url.",
    )


def check_reach(folder: Path, account: Account) -> None:
    """Raise EmbeddedServerFailed when the account cannot enter the folder, because of one above it."""
    enter = ["/bin/sh", "-c", 'cd -- "$1"', "sh", os.fspath(folder)]
    done = subprocess.run(
        enter, user=account.uid, group=account.gid, extra_groups=[], stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise EmbeddedServerFailed(
            f"The data folder {folder} cannot be reached by the account {account.name}, "
            "which runs the server, since PostgreSQL does not run as root.",
            hint=f"A folder above it is closed. {ELSEWHERE}",
        )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
