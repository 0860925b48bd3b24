"""Runs `weft` as a process, as a person or a script would."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "weft.cli"]
LIMIT = 60
_LEFT_OUT = {"NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended and what it said."""

    status: int
    stdout: str
    stderr: str

    @property
    def values(self) -> list[Any]:
        """Every line of stdout as JSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def ok(self) -> Done:
        assert self.status == 0, self
        return self


def environment(url: str | None, **more: str) -> dict[str, str]:
    """The tests' own, without what would change what weft prints; terminals are 40 columns wide."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_") and name not in _LEFT_OUT}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    kept |= {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "40", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    if url is not None:
        kept["WEFT_DATABASE_URL"] = url
    return kept | more


class Weft:
    """`weft` in a folder with a database."""

    def __init__(self, url: str | None, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def __call__(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Done:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=environment(self.url, **(env or {})),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
        """A process that goes on, with `more` in its environment; ended at the latest when the block is left."""
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=environment(self.url, **more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def queue(self, name: str = "main.weft", *arguments: str) -> str:
        """Queue a run; its id."""
        return self("run", name, "--detach", *arguments).ok().stdout.strip()

    def status(self, run: str) -> str:
        """Asked of the database, since tests ask it often and a process is slow."""
        return asyncio.run(_status(self.url, run))


async def _status(url: str | None, run: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        return str(await connection.fetchval("SELECT status FROM weft.runs WHERE id = $1", UUID(run)))
    finally:
        await connection.close()


def said(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line on a process's stderr that matches."""
    assert process.stderr is not None
    seen: list[str] = []
    for line in process.stderr:
        seen.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError(f"{pattern!r} was never said, but: {''.join(seen)}")


def until(holds: Callable[[], bool], within: float = 20) -> None:
    """Look again and again until it holds."""
    limit = time.monotonic() + within
    while not holds():
        assert time.monotonic() < limit, "it never came to hold"
        time.sleep(0.05)
