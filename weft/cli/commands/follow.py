"""`weft follow`: a run's lines and failures as they come, whoever drives it; its end is the exit status."""

from __future__ import annotations

import asyncio
import signal
import time
from datetime import timedelta

from weft.cli.commands.events import LOOK_AGAIN
from weft.cli.commands.logs import print_news
from weft.cli.flags import duration
from weft.cli.output import STATUS_COLOURS, Output, note
from weft.cli.session import opened, who_goes_on
from weft.cli.shell import COMPLETED, ENDINGS, INTERRUPTED, NOT_ENDED
from weft.cli.speaking import how_to_end, waits_text
from weft.service import doors, listing
from weft.service.ids import find_run
from weft.service.listing import Cursor, RunRow
from weft.service.shapes import run_json
from weft.service.why import why
from weft.store.pool import Database

LOOK_FOR_WORKERS = 2.0
"""Seconds between two looks whether anybody could run what is queued."""


async def follow(piece: str, timeout: str | None, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    limit = None if timeout is None else duration(timeout, "--timeout")
    async with opened(database_url) as store:
        run = await find_run(store.database, piece)
        following = asyncio.create_task(_to_its_end(store.database, run, out))
        interrupted = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
        watching = asyncio.create_task(interrupted.wait())
        waits = None if limit is None else limit.total_seconds()
        await asyncio.wait({following, watching}, timeout=waits, return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        if following.done():
            return following.result()
        following.cancel()
        await asyncio.wait({following})
        return await _not_ended(store.database, run, out, None if interrupted.is_set() else limit)


async def _to_its_end(database: Database, run: RunRow, out: Output) -> int:
    cursor = Cursor(database, run)
    waiting = _QueueWatch(database, run)
    while True:
        async for stored in cursor.news():
            print_news(out, stored)
        out.flush()
        if cursor.done:
            break
        if out.gone:
            return COMPLETED
        await waiting.look()
        await asyncio.sleep(LOOK_AGAIN)
    ended = await listing.refreshed(database, run)
    if out.json:
        out.value(run_json(ended))
        out.flush()
    else:
        note(ended.status, STATUS_COLOURS.get(ended.status))
    return ENDINGS[ended.status]


async def _not_ended(database: Database, run: RunRow, out: Output, limit: timedelta | None) -> int:
    """What goes on without us: after the time-out, or (no limit) after Ctrl-C."""
    now = await listing.refreshed(database, run)
    if now.ended:
        note(now.status, STATUS_COLOURS.get(now.status))
        return ENDINGS[now.status]
    if out.json:
        out.value(run_json(now))
        out.flush()
    goes_on = await who_goes_on(database, now)
    if limit is None:
        note(f"run {run.run} is {now.status}: {goes_on}")
        return INTERRUPTED
    note(f"run {run.run} is still {now.status} after {limit.total_seconds():g} s: {goes_on}")
    return NOT_ENDED


class _QueueWatch:
    """Says once that a queued run has nobody who could run it, and once that this has changed; and of a run that waits,
    each thing that it waits for."""

    def __init__(self, database: Database, run: RunRow) -> None:
        self._database = database
        self._run = run
        self._next = 0.0
        self._lonely = False
        self._told: set[str] = set()

    async def look(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_FOR_WORKERS
        now = await listing.refreshed(self._database, self._run)
        lonely = now.status == "queued" and not await listing.workers_of(self._database, now.project)
        if lonely and not self._lonely:
            note(f"queued, and no worker of {now.project_name} is alive: start one with weft worker", "yellow")
        elif self._lonely and not lonely and not now.ended:
            note("a worker is alive now")
        self._lonely = lonely
        if now.status == "waiting":
            await self._tell_waits(now)

    async def _tell_waits(self, run: RunRow) -> None:
        address = await doors.address(self._database)
        for each in (await why(self._database, run)).own_waits:
            if each.token not in self._told:
                self._told.add(each.token)
                note(f"{waits_text(each)}: {how_to_end(each, address)}", "cyan")
