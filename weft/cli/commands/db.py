"""`weft db`: where the data is, bring it up to date, write it out."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from weft.cli.output import Output, note
from weft.cli.session import opened
from weft.cli.shell import COMPLETED
from weft.errors import NotFound, StoreUnreachable
from weft.service import database


async def where(json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        about = await database.about(store.database)
        facts: dict[str, Any] = {
            "url": without_password(store.url),
            "embedded": store.settings.database_url is None,
            "server": about.server,
            "schema": about.schema,
            "bytes": about.bytes,
        }
        if json:
            out.value(facts)
        else:
            out.line(f"database  {facts['url']}")
            if facts["embedded"]:
                out.line("server    the embedded PostgreSQL of this user, there while a weft process uses it")
            out.line(f"version   PostgreSQL {about.server}, weft schema {about.schema:04}")
            out.line(f"size      {about.bytes / 2**20:.1f} MiB")
    return COMPLETED


async def migrate(json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        about = await database.about(store.database)
        if json:
            out.value({"url": without_password(store.url), "schema": about.schema})
        else:
            out.line(f"{without_password(store.url)} is at weft schema {about.schema:04}")
    return COMPLETED


async def dump(file: Path | None, database_url: str | None) -> int:
    """Everything in weft's schema as SQL; a file appears under its name only when it is whole."""
    async with opened(database_url) as store:
        tool = _pg_dump()
        url, environment = _for_libpq(store.url)
        part = _beside(file)
        command = [tool, "--schema=weft", "--no-owner", f"--dbname={url}"]
        if file is not None:
            command.append(f"--file={part or file}")
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment}, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        if file is None and process.returncode == -signal.SIGPIPE:
            return COMPLETED
        if process.returncode:
            if part is not None:
                part.unlink(missing_ok=True)
            raise StoreUnreachable(f"pg_dump failed: {said.decode(errors='replace').strip()}")
        if part is not None and file is not None:
            part.rename(file)
        if file is not None:
            note(f"wrote {file}")
    return COMPLETED


def _beside(file: Path | None) -> Path | None:
    """Where a file is written until it is whole. A device or a pipe has no such place: it is never replaced."""
    if file is None or (file.exists() and not file.is_file()):
        return None
    return file.with_name(file.name + ".part")


def _pg_dump() -> str:
    from weft.errors import EmbeddedServerFailed
    from weft.store.embedded import tools

    try:
        found = str(tools.find().bin / "pg_dump")
    except EmbeddedServerFailed:
        found = "pg_dump"
    tool = shutil.which(found) or shutil.which("pg_dump")
    if tool is None:
        raise NotFound("pg_dump is not installed", hint="Install PostgreSQL's client programs.")
    return tool


def without_password(url: str) -> str:
    """A database URL that may be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***{at}{host}"))


def _for_libpq(url: str) -> tuple[str, dict[str, str]]:
    """The URL without its password, which goes by the environment: arguments are for everybody to see."""
    parts = urlsplit(url)
    if parts.password is None:
        return url, {}
    user, at, host = parts.netloc.rpartition("@")
    plain = parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}")
    return urlunsplit(plain), {"PGPASSWORD": unquote(parts.password)}
