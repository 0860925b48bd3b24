"""PostgreSQL's programs as processes: run as the right account, with nothing of the caller leaking in."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weft.store.embedded.folder import Account


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs programs in a data folder, as its account (None: as the caller)."""

    folder: Path
    account: Account | None

    def spawn(
        self, command: Sequence[str | Path], output: IO[bytes], *, keep_open: int | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program; both its streams go to `output`. It inherits the file `keep_open` and no other."""
        # PGDATA, PGPORT and their kin would change what the programs do; messages are read, so they are
        # English.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        account = self.account
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env={**environment, "LC_ALL": "C"},
            umask=0o077,
            pass_fds=() if keep_open is None else (keep_open,),
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else (),
        )

    def run(self, command: Sequence[str | Path], *, keep_open: int | None = None) -> tuple[int, str]:
        """Run a program to its end: its exit status and what it said."""
        with tempfile.TemporaryFile() as output:
            status = self.spawn(command, output, keep_open=keep_open).wait()
            output.seek(0)
            return status, output.read().decode(errors="replace")
