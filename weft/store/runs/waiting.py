"""Reads for people: a run with all that lives below it, and what each of them waits for. How waits end: `waits.py`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from weft.store.pool import Connection
from weft.store.runs.waits import Wait
from weft.store.sql import load

_SQL = load(__name__)

MOST = 1_000
"""Runs of one tree that are read."""


class TreeRun(NamedTuple):
    """A run of a tree; `level` counts from the one that was asked for. `open_firings` is JSON text. The worker, its
    host and its process id are those of whoever drives the run, None while nobody does."""

    project: int
    run: UUID
    parent: UUID | None
    level: int
    entry: str
    status: str
    open_firings: str
    deadline: datetime | None
    worker: int | None
    host: str | None
    pid: int | None


async def tree(conn: Connection, project: int, run: UUID) -> list[TreeRun]:
    """The run, live or not, and the live runs below it; of a huge tree the upper `MOST`. Empty: no such run."""
    return [TreeRun(*row) for row in await conn.fetch(_SQL.tree, project, run, MOST)]


async def waits_of(conn: Connection, project: int, runs: Sequence[UUID]) -> list[Wait]:
    """What these runs wait for, the longest waiting first."""
    return [Wait(*row) for row in await conn.fetch(_SQL.waits_of, project, list(runs))]
