"""The journal: what runs committed, in packed rows with dense numbers, and the one statement that writes it.

A writer is a run's owner here. Who ends a run from outside writes through `scopes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import asyncpg

from weft.store.pool import Connection
from weft.store.runs.packing import as_row, fits_one_row, pack
from weft.store.runs.waits import NewWait, wait_columns
from weft.store.sql import load

_SQL = load(__name__)


@dataclass(slots=True)
class Write:
    """What one run has to commit: encoded events, and the JSON list of the firings that are open after them.

    `ends` makes it the run's last: its events then end with the terminal one, and `error` says why it failed.
    `after` is the number of the last event known to be saved, for whoever must find out what a lost
    connection has saved. `waits` are registered and the waits of the tokens `forget` erased with it. A write that
    `parks` lets the run go, to wait: if no other event came after `after`; it may consist of nothing else. One
    that ends the run has none of these: the end erases all waits.
    """

    project: int
    run: UUID
    lease: int
    events: Sequence[str]
    open_firings: str
    ends: Literal["completed", "failed"] | None = None
    error: str | None = None
    after: int = 0
    waits: Sequence[NewWait] = ()
    forget: Sequence[str] = ()
    parks: bool = False

    @property
    def is_about_waits(self) -> bool:
        return self.ends is None and bool(self.parks or self.waits or self.forget)


class Saved(NamedTuple):
    """A write that was committed: the number of the run's next event, and whether the run is now parked, and free."""

    next_seq: int
    parked: bool


@dataclass(frozen=True, slots=True)
class JournalRow:
    """`count` events from number `first` on; `events` is the text of a JSON array."""

    first: int
    count: int
    at: datetime
    events: str


async def append(conn: Connection, worker: UUID, writes: Sequence[Write]) -> dict[UUID, Saved]:
    """Commits what many runs have to write, at most one write a run, in one statement that commits by itself; in two
    where some runs end and others wait.

    A run that is missing in the answer is locked by somebody, is no longer the worker's at that lease, has ended, or
    would end with children below it: try it with `append_alone`.
    """
    if not any(write.is_about_waits for write in writes):
        return await _append(conn, worker, writes, False)
    saved = await _append_waiting(conn, worker, [write for write in writes if write.ends is None])
    if last := [write for write in writes if write.ends is not None]:
        saved |= await _append(conn, worker, last, False)
    return saved


async def append_alone(conn: Connection, worker: UUID, write: Write) -> Saved | None:
    """The same for one run, waiting for its locks. None: the worker has lost it, or it would end with children below
    it, which `scopes.end_owned` does.

    Opens its own transaction. It may wait for as long as somebody else is ending the tree that the run is in.
    """
    while True:
        try:
            async with conn.transaction():
                if write.ends is not None:
                    await conn.execute(_SQL.lock_scope, write.project, write.run)
                await conn.execute(_SQL.lock_run, write.project, write.run)
                return (await append(conn, worker, [write])).get(write.run)
        except asyncpg.LockNotAvailableError:
            continue


async def append_last(conn: Connection, worker: UUID, write: Write) -> bool:
    """A run's last write, in a transaction that has ended all that is below it. False: the worker has lost the run."""
    return bool(await _append(conn, worker, [write], True))


async def _append_waiting(conn: Connection, worker: UUID, writes: Sequence[Write]) -> dict[UUID, Saved]:
    forgotten = [(owner, token) for owner, write in enumerate(writes, start=1) for token in write.forget]
    written = await conn.fetch(
        _SQL.append_waiting,
        worker,
        *_columns(writes),
        [write.parks for write in writes],
        [write.after for write in writes],
        *_rows(writes),
        *wait_columns(write.waits for write in writes),
        [owner for owner, _ in forgotten],
        [token for _, token in forgotten],
    )
    return _saved(written)


async def _append(conn: Connection, worker: UUID, writes: Sequence[Write], nothing_below: bool) -> dict[UUID, Saved]:
    if any(write.ends is not None for write in writes):
        written = await conn.fetch(
            _SQL.append_ending,
            worker,
            *_columns(writes),
            [write.ends for write in writes],
            [write.error for write in writes],
            *_rows(writes),
            nothing_below,
        )
    elif len(writes) == 1 and fits_one_row(writes[0].events):
        [write] = writes
        written = await conn.fetch(
            _SQL.append_one,
            worker,
            write.project,
            write.run,
            write.lease,
            len(write.events),
            write.open_firings,
            as_row(write.events),
        )
    else:
        written = await conn.fetch(_SQL.append, worker, *_columns(writes), *_rows(writes))
    return _saved(written)


def _saved(written: Sequence[Any]) -> dict[UUID, Saved]:
    return {run: Saved(next_seq, parked) for run, next_seq, parked in written}


def _columns(writes: Sequence[Write]) -> tuple[list[Any], ...]:
    return (
        [write.project for write in writes],
        [write.run for write in writes],
        [write.lease for write in writes],
        [len(write.events) for write in writes],
        [write.open_firings for write in writes],
    )


def _rows(writes: Sequence[Write]) -> tuple[list[Any], ...]:
    rows = pack(write.events for write in writes)
    return rows.owner, rows.offset, rows.count, rows.events


async def note(conn: Connection, project: int, runs: Sequence[tuple[UUID, int, Sequence[str]]]) -> None:
    """Writes events of runs whose rows the caller has locked and whose numbers it has moved: run, number of
    the first event, events."""
    rows = pack(events for _, _, events in runs)
    await conn.execute(
        _SQL.note,
        project,
        [run for run, _, _ in runs],
        [first for _, first, _ in runs],
        rows.owner,
        rows.offset,
        rows.count,
        rows.events,
    )


async def read(conn: Connection, project: int, run: UUID, after: int = 0) -> list[JournalRow]:
    """The rows that hold events numbered above `after`, in order. The first may begin with older ones."""
    return [JournalRow(*row) for row in await conn.fetch(_SQL.read, project, run, after)]


async def aftermath(conn: Connection, project: int, run: UUID, event: str) -> None:
    """Keeps an event that came after the run's end."""
    await conn.execute(_SQL.aftermath, project, run, event)
