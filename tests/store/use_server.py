"""A process that uses the embedded server of a folder, told what to do line by line.

    python use_server.py FOLDER [--as UID:GID] [--tools FOLDER] [--rounds N]

It says `attached PID` (the server's) once it may use the server, then reads one line and leaves: it says `left`.
With `--rounds` it attaches, asks the server something and leaves, so many times, and says `done`.
Where weft refuses, it says `refused` and the message.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import asyncpg

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import EmbeddedServer, embedded_server, postmaster


def say(*words: object) -> None:
    print(*words, flush=True)


async def use_once(folder: Path, tools: Path | None) -> None:
    async with embedded_server(folder, tools=tools) as dsn:
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
                asyncio.run(use_once(given.folder, given.tools))
            say("done")
            return
        server = EmbeddedServer(given.folder, tools=given.tools)
        if not server.attach_running():
            server.attach()
        running = postmaster.read(given.folder / "data")
        say("attached", running.pid if running else "nothing")
        sys.stdin.readline()
        server.leave()
        say("left")
    except EmbeddedServerFailed as error:
        say("refused", error.message, error.hint)


if __name__ == "__main__":
    main()
