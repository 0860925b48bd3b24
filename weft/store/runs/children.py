"""Runs that wait for runs: the end of one is carried to all that wait for it.

The end of a run below another writes a row to the outbox, and so does whoever begins to wait for a run; here the rows
are worked off. Ending a run touches no other run by itself, so no lock is ever taken upwards. Starting runs below
another is in `runs.py`, ending them with it in `scopes.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from weft.flow.texts import to_json
from weft.store.pool import Connection
from weft.store.runs.waits import PUT_OFF, Resolution, Wait, Woken, resolve_each
from weft.store.sql import load

_SQL = load(__name__)

LOOK_AGAIN: Final = timedelta(seconds=1)
"""How often a run is looked at that has nothing above it, and so writes no row when it ends."""


async def take_ended(conn: Connection, limit: int) -> Woken:
    """Looks at up to `limit` runs of the outbox, and ends the waits for those that have ended.

    The value is `{"run", "status", "reason"}`; the status of a run that was deleted is `deleted`. Opens its own
    transaction; each wait ends once, however many processes do this.
    """
    woken = Woken()
    async with conn.transaction():
        rows = await conn.fetch(_SQL.take, limit)
        # A run may stand in the outbox twice: for its end, and for whoever began to wait for it.
        ending = {row["token"]: _resolution(row) for row in rows if row["held"] and not row["live"]}
        await resolve_each(conn, list(ending.values()), woken)
        failed = {wait.target for wait, _ in woken.failed}
        every = {(row["project"], row["id"]) for row in rows}
        put_off = {(row["project"], row["id"]) for row in rows if row["ended"] in failed}
        again = {(row["project"], row["id"]) for row in rows if _is_open(row)} - put_off
        await conn.execute(_SQL.done, *_columns(every - again - put_off))
        await conn.execute(_SQL.postpone, *_columns(again), LOOK_AGAIN)
        await conn.execute(_SQL.postpone, *_columns(put_off), PUT_OFF)
    return woken


def _is_open(row: Any) -> bool:
    """Whether somebody waits who cannot be told now and would not be told later."""
    if row["token"] is None:
        return False
    return not row["announces"] if row["live"] else not row["held"]


def _resolution(row: Any) -> Resolution:
    wait = Wait(
        row["project"],
        row["run"],
        row["node"],
        row["frames"],
        row["call"],
        row["part"],
        row["token"],
        row["kind"],
        row["spec"],
        row["mode"],
        row["target"],
        row["due"],
        row["registered_at"],
    )
    status = row["status"] or "deleted"
    value = {"run": str(row["ended"]), "status": status, "reason": row["reason"]}
    return Resolution(wait, f"run {row['ended']}", to_json(value))


def _columns(keys: set[tuple[int, int]]) -> tuple[list[int], list[int]]:
    ordered = sorted(keys)
    return [project for project, _ in ordered], [number for _, number in ordered]
