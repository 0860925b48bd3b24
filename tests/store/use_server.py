"""A process that uses the embedded server of a folder, told what to do line by line.

    python use_server.py FOLDER [--as UID:GID] [--tools FOLDER] [--rounds N]

It says `attached PID` (the server's) once it may use the server, then reads one line and leaves: it says `left`.
With `--rounds` it attaches, asks the server something and leaves, so many times, and says `done`.
Where weft refuses, it says `refused` and the message. A server that it starts does not sync, to be quick.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import asyncpg

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import EmbeddedServer, postmaster


def say(*words: object) -> None:
    print(*words, flush=True)


def attached(folder: Path, tools: Path | None) -> EmbeddedServer:
    server = EmbeddedServer(folder, tools=tools, settings={"fsync": "off"})
    if not server.attach_running():
        server.attach()
    return server


async def ask(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("SELECT 42") == 42
    await connection.close()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--as", dest="account")
    options.add_argument("--tools", type=Path)
    options.add_argument("--rounds", type=int)
    given = options.parse_args()
    if given.account:
        uid, gid = map(int, given.account.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    try:
        if given.rounds:
            for _ in range(given.rounds):
                server = attached(given.folder, given.tools)
                asyncio.run(ask(server.dsn))
                server.leave()
            say("done")
            return
        server = attached(given.folder, given.tools)
        running = postmaster.read(given.folder / "data")
        say("attached", running.pid if running else "nothing")
        sys.stdin.readline()
        server.leave()
        say("left")
    except EmbeddedServerFailed as error:
        say("refused", error.message, error.hint)


if __name__ == "__main__":
    main()
