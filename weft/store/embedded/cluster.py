"""PostgreSQL's own folder: made whole, checked, and given its settings.

It is made beside its place and moved there when it is complete, so that a half-made one never counts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import postmaster
from weft.store.embedded.folder import ELSEWHERE, data_of, failed
from weft.store.embedded.locks import LockFile
from weft.store.embedded.programs import Programs
from weft.store.embedded.tools import Tools

USER = "weft"
HALF_MADE = "data-new-"

# No door but the folder. Checkpoints are rare and full pages compressed, because small commits right after
# a checkpoint write ten times their size otherwise ("on" is pglz: the installed package has no lz4). A
# statement that fails is its sender's to report: the log keeps what only the server knows.
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


def make_or_check(tools: Tools, programs: Programs, start: LockFile, *, sync: bool) -> None:
    """The cluster is there and of the tools' major version afterwards. Raises EmbeddedServerFailed.

    `start` is the lock that the caller holds; without `sync` a power cut may lose a cluster made a moment
    ago.
    """
    data = data_of(programs.folder)
    for half_made in programs.folder.glob(f"{HALF_MADE}*"):
        shutil.rmtree(half_made, ignore_errors=True)
    if data.is_dir() and any(data.iterdir()):
        _check_major(tools, data)
        return
    new = Path(tempfile.mkdtemp(prefix=HALF_MADE, dir=programs.folder))
    if programs.account is not None:
        os.chown(new, programs.account.uid, programs.account.gid)
    command: list[str | Path] = [tools.bin / "initdb", "-D", new, "--username", USER, "--auth=trust"]
    command += ["--encoding=UTF8", "--no-locale", "--no-instructions", "--data-checksums"]
    if not sync:
        command.append("--no-sync")
    # initdb outlives a killed caller. It inherits the lock, so that the next one waits for its end.
    status, said = programs.run(command, keep_open=start.descriptor)
    if status != 0:
        shutil.rmtree(new, ignore_errors=True)
        raise failed(programs.folder, "The database could not be made", said)
    new.rename(data)


def write_settings(folder: Path, changed: Mapping[str, str]) -> None:
    """Write PostgreSQL's settings file: ours, and what is `changed` in them."""
    settings = {**SETTINGS, "unix_socket_directories": f'"{folder}"', **changed}
    lines = ["# Written by weft at each start. ALTER SYSTEM changes a setting for good."]
    for name, value in settings.items():
        quoted = value.replace("'", "''")
        lines.append(f"{name} = '{quoted}'")
    file = data_of(folder) / "postgresql.conf"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    file.chmod(0o644)


def _check_major(tools: Tools, data: Path) -> None:
    try:
        major = (data / "PG_VERSION").read_text("utf-8").strip()
    except FileNotFoundError:
        raise EmbeddedServerFailed(
            f"{data} is not a database: it holds files, but no PG_VERSION.",
            hint=f"Restore it from a backup, or move it away and start anew. {ELSEWHERE}",
        ) from None
    if major != str(tools.major):
        raise EmbeddedServerFailed(
            f"The data in {data.parent} was made by PostgreSQL {major}; the programs are {tools.version}.",
            hint=ELSEWHERE,
        )
