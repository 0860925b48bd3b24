"""Waits: what parked firings wait for, and how a wait ends: by an answer, by its time, or by the end of another run.

Whatever ends one journals it and lets its run go on, in one statement that is guarded by the run's row: who
comes second finds nothing. Waits are registered by the owner's commits (`journal.py`) and erased by the end of
their run (`scopes.py`); runs that wait for runs are `children.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from weft.errors import AlreadyAnswered, Conflict, NotFound, WaitGone
from weft.flow.events import SuspensionRegistered, SuspensionResolved, encode
from weft.lang.graph import MISSING
from weft.log import get_logger
from weft.rules.waits import instant_text, run_of
from weft.store.pool import CONNECTION_LOST, Connection
from weft.store.sql import load

_SQL = load(__name__)

Kind = Literal["form", "timer", "webhook", "run", "retry"]

PUT_OFF: Final = timedelta(minutes=1)
"""When a due wait that cannot be ended is tried again."""

log = get_logger("weft.store")


@dataclass(frozen=True, slots=True)
class NewWait:
    """A wait to be registered. `frames` and `spec` are JSON texts; `target` is the run that it waits for, `due` when a
    timer or a back-off ends and anything else times out."""

    node: str
    frames: str
    call: int
    part: int
    token: str
    kind: Kind
    spec: str = "{}"
    mode: Literal["first", "all"] = "first"
    target: UUID | None = None
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait that is open. `mode` is None where it is the only part of its suspension."""

    project: int
    run: UUID
    node: str
    frames: str
    call: int
    part: int
    token: str
    kind: Kind
    spec: str
    mode: Literal["first", "all"] | None
    target: UUID | None
    due: datetime | None
    registered_at: datetime


class Answered(NamedTuple):
    """A wait that has ended. Without a worker its run can be claimed; else the worker must hear of it."""

    project: int
    run: UUID
    worker: UUID | None
    token: str


@dataclass(slots=True)
class Woken:
    """What was due: the waits that have ended, and those that could not, each with the error; they are put off."""

    answered: list[Answered] = field(default_factory=list)
    failed: list[tuple[Wait, Exception]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a wait ends: by whom, with a value (JSON text) or none."""

    wait: Wait
    by: str
    value: str | None = None
    timed_out: bool = False
    skipped: bool = False

    def event(self) -> str:
        wait = self.wait
        frames = tuple(json.loads(wait.frames))
        text, timed_out, skipped = self.value, self.timed_out, self.skipped
        return encode(
            SuspensionResolved(wait.node, frames, wait.call, wait.token, MISSING, self.by, timed_out, skipped, text)
        )


def wait_columns(batch: Iterable[Sequence[NewWait]]) -> tuple[list[Any], ...]:
    """The columns that a commit unnests, with the place of the write, from 1, before them."""
    rows: list[tuple[Any, ...]] = []
    for owner, waits in enumerate(batch, start=1):
        places = [(wait.node, wait.frames, wait.call) for wait in waits]
        for wait, place in zip(waits, places, strict=True):
            mode = wait.mode if places.count(place) > 1 else None
            rows.append((owner, *place, wait.part, wait.token, wait.kind, mode, wait.target, wait.due, wait.spec))
    return tuple(map(list, zip(*rows, strict=True))) if rows else tuple([] for _ in range(11))


async def secret(conn: Connection) -> bytes:
    """What this database's tokens are made with (`rules/waits.py`); it never changes."""
    key: bytes = await conn.fetchval(_SQL.secret)
    return key


async def now(conn: Connection) -> datetime:
    """The store's clock, by which every wait is due."""
    instant: datetime = await conn.fetchval(_SQL.now)
    return instant


# --- reading ----------------------------------------------------------------------------------------------


async def find(conn: Connection, token: str) -> Wait:
    """The open wait of that token. Raises `AlreadyAnswered`, `WaitGone` and, where no wait ever had it, `NotFound`."""
    run = _run_of(token)
    while (row := await conn.fetchrow(_SQL.find, run, token)) is None:
        await _say_what_became_of(conn, run, token)
    return Wait(*row)


async def is_open(conn: Connection, token: str) -> bool:
    """Whether a wait of that token is open; never looks into a journal. Raises `NotFound` for what is no token."""
    return await conn.fetchrow(_SQL.find, _run_of(token), token) is not None


async def of_run(conn: Connection, project: int, run: UUID) -> list[Wait]:
    """What the run waits for, the longest waiting first."""
    return [Wait(*row) for row in await conn.fetch(_SQL.of_run, project, run)]


async def forms(
    conn: Connection, projects: Sequence[int], limit: int, after: tuple[datetime, str] | None = None
) -> list[Wait]:
    """Open forms of the projects, the longest waiting first; `after` is `(registered_at, token)` of the last seen."""
    registered_at, token = after or (None, None)
    return [Wait(*row) for row in await conn.fetch(_SQL.forms, list(projects), registered_at, token, limit)]


# --- answering --------------------------------------------------------------------------------------------


async def answer(
    conn: Connection, token: str, value: str | None, by: str, *, timed_out: bool = False, skipped: bool = False
) -> Answered:
    """Ends a wait with a value (JSON text). Two statements, of which the second does all that is done.

    The first answer counts. Raises `AlreadyAnswered` for any other, `WaitGone` once the run has ended or the wait
    is over with another one, `NotFound` where no wait ever had the token.
    """
    return await settle(conn, Resolution(await find(conn, token), by, value, timed_out, skipped))


async def settle(conn: Connection, resolution: Resolution) -> Answered:
    """Ends a wait that the caller has found before. One statement, in the caller's transaction or alone; raises as
    `answer` does."""
    while not (answered := await _resolve(conn, [resolution])):
        await _say_what_became_of(conn, resolution.wait.run, resolution.wait.token)
    return answered[0]


async def wake(conn: Connection, wait: Wait, by: str) -> Answered:
    """Ends a timer or a back-off now. Raises `Conflict` for a wait that expects a value, and as `answer` does."""
    if wait.kind not in ("timer", "retry"):
        raise Conflict(f"only a timer can be woken: this is a {wait.kind}, which has to be answered", run=str(wait.run))
    return await settle(conn, _at_its_time(wait, await now(conn), by))


async def take_due(conn: Connection, limit: int) -> Woken:
    """Ends up to `limit` waits that are due: timers and back-offs are over, anything else has timed out.

    Opens its own transaction. Each wait ends once, however many processes do this; those of runs that somebody
    else holds are passed over and come next time. When nothing was answered or failed there is no use in trying
    again at once.
    """
    async with conn.transaction():
        rows = await conn.fetch(_SQL.due, limit)
        due = [_at_its_time(Wait(*row[:13]), row["at"], "timer") for row in rows]
        woken = Woken()
        await resolve_each(conn, due, woken)
        for wait, _ in woken.failed:
            await conn.execute(_SQL.postpone, wait.project, wait.run, wait.token, PUT_OFF)
    return woken


async def resolve_each(conn: Connection, resolutions: Sequence[Resolution], woken: Woken) -> None:
    """Ends waits of runs that the caller's transaction holds; where that fails, each half by itself, down to the one
    that is at fault."""
    if not resolutions:
        return
    try:
        async with conn.transaction():
            woken.answered += await _resolve(conn, resolutions)
    except CONNECTION_LOST:
        raise
    except Exception as error:
        if len(resolutions) == 1:
            wait = resolutions[0].wait
            log.warning("a wait could not be ended", run=str(wait.run), node=wait.node, error=str(error))
            woken.failed.append((wait, error))
            return
        middle = len(resolutions) // 2
        await resolve_each(conn, resolutions[:middle], woken)
        await resolve_each(conn, resolutions[middle:], woken)


async def _resolve(conn: Connection, resolutions: Sequence[Resolution]) -> list[Answered]:
    rows = await conn.fetch(
        _SQL.resolve,
        [each.wait.project for each in resolutions],
        [each.wait.run for each in resolutions],
        [each.wait.token for each in resolutions],
        [each.event() for each in resolutions],
        [each.timed_out or each.skipped for each in resolutions],
    )
    return [Answered(*row) for row in rows]


def _at_its_time(wait: Wait, at: datetime, by: str) -> Resolution:
    match wait.kind:
        case "timer":
            return Resolution(wait, by, json.dumps(instant_text(at)))
        case "retry":
            return Resolution(wait, by)
        case _:
            return Resolution(wait, by, timed_out=True)


# --- too late ---------------------------------------------------------------------------------------------


def _run_of(token: str) -> UUID:
    try:
        return run_of(token)
    except ValueError as error:
        raise NotFound(str(error)) from None


async def _say_what_became_of(conn: Connection, run: UUID, token: str) -> None:
    """Raises why no wait of the token is open, as the journal of its run says; returns where one is open by now."""
    row = await conn.fetchrow(_SQL.run_of_token, run)
    tale = [] if row is None else await _told_of(conn, row["project"], run, token)
    for at, event in tale:
        if event["kind"] == SuspensionResolved.kind and event["token"] == token:
            raise _already_answered(at, event, run)
    suspension = next((event for _, event in tale if event["kind"] == SuspensionRegistered.kind), None)
    if row is None or suspension is None:
        raise NotFound("there is no wait of this token")
    if row["ended_at"] is not None:
        raise _gone_with_its_run(row, run)
    for other in suspension["waits"]:
        for at, event in await _told_of(conn, row["project"], run, other["token"]):
            if event["kind"] == SuspensionResolved.kind and event["token"] == other["token"]:
                raise _gone(at, f"the {other['kind']} beside it came first", run)
    if await conn.fetchrow(_SQL.find, run, token) is None:
        raise _gone(tale[0][0], "the node that waited for it has ended", run)


async def _told_of(conn: Connection, project: int, run: UUID, token: str) -> list[tuple[datetime, dict[str, Any]]]:
    """The events in which the token stands, the newest first."""
    told = []
    for row in await conn.fetch(_SQL.told_of, project, run, token):
        for event in reversed(json.loads(row["events"])):
            if event.get("token") == token or any(wait["token"] == token for wait in event.get("waits", ())):
                told.append((row["at"], event))
    return told


def _already_answered(at: datetime, event: dict[str, Any], run: UUID) -> AlreadyAnswered:
    timed_out, skipped = event.get("timed_out", False), event.get("skipped", False)
    by = event.get("by", "")
    when = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    if timed_out:
        message = f"this timed out at {when}"
    elif skipped:
        message = f"this was skipped at {when} by {by}"
    else:
        message = f"this was answered at {when} by {by}"
    value = event.get("value", MISSING)
    return AlreadyAnswered(message, at=at, by=by, value=value, timed_out=timed_out, skipped=skipped, run=str(run))


def _gone(at: datetime, reason: str, run: UUID) -> WaitGone:
    return WaitGone(f"nothing waits for this any more: {reason}", at=at, reason=reason, run=str(run))


def _gone_with_its_run(row: Any, run: UUID) -> WaitGone:
    reason = row["reason"] or row["error"] or f"the run has {row['status']}"
    when = f"{row['ended_at']:%Y-%m-%d %H:%M:%S} UTC"
    verb = "was cancelled" if row["status"] == "cancelled" else f"has {row['status']}"
    return WaitGone(
        f"nothing waits for this any more: run {run} {verb} at {when}: {reason}",
        at=row["ended_at"],
        reason=reason,
        status=row["status"],
        cause=None if row["cause"] is None else json.loads(row["cause"]),
        run=str(run),
    )
