"""A run's events and lines: page by page, waiting for more, or as server-sent events.

A cursor is the number of an event in its run, with `.N` behind it for the N-th that came after the run's end. Who goes
on behind a cursor misses nothing and gets nothing twice.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Any, Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import JSONResponse, Response

from weft.errors import NotFound
from weft.flow.events import CLASSES
from weft.service.listing import TERMINAL, Cursor, RunRow, StoredEvent, refreshed
from weft.service.shapes import event_json
from weft.web.access import caller
from weft.web.api.finding import run_at, shown
from weft.web.api.table import Call
from weft.web.reading import invalid, one_query, whole_query
from weft.web.refusals import Refused

MOST: Final = 1000
DEFAULT: Final = 200
LONGEST_WAIT: Final = 30
LOOK_AGAIN: Final = 0.5
"""Seconds between two looks for what other processes commit; what this one commits is told at once."""

ASK_AGAIN: Final = 5.0
"""Seconds after which an open stream looks whether its token still opens something."""

PING: Final = 15
SEND_TIME: Final = 30
"""Seconds that a reader may leave one event lying."""

LINES: Final = frozenset({"log_line", "cost_reported", "node_failed", *TERMINAL})
"""The kinds of which logs are made."""

_CURSOR = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,15}))?")


@dataclass(frozen=True, slots=True)
class Place:
    """Behind an event of a run."""

    seq: int = 0
    late: int = 0

    def __str__(self) -> str:
        return f"{self.seq}.{self.late}" if self.late else str(self.seq)

    def behind(self, stored: StoredEvent) -> Place:
        return Place(self.seq, stored.late or 0) if stored.seq is None else Place(stored.seq)


def _place(text: str | None) -> Place:
    if text is None:
        return Place()
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise invalid("this is not a cursor of a run's events", "Take the `cursor` of the page before.")
    return Place(int(found[1]), int(found[2] or 0))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events; empty is all."""

    kinds: Collection[str]
    nodes: Collection[str]

    def has(self, stored: StoredEvent) -> bool:
        kind, node = stored.event["kind"], stored.event.get("node")
        return (not self.kinds or kind in self.kinds) and (not self.nodes or node in self.nodes)


async def run_events(call: Call) -> Response:
    kinds = call.request.query_params.getlist("kind")
    for each in kinds:
        if each not in CLASSES:
            raise invalid(f"there is no kind of event {each[:80]!r}", f"There are: {', '.join(CLASSES)}.")
    wanted = Wanted(kinds, call.request.query_params.getlist("node"))
    if "text/event-stream" in call.request.headers.get("accept", "").lower():
        return await _stream(call, wanted)
    return await _page(call, wanted)


async def run_logs(call: Call) -> Response:
    return await _page(call, Wanted(LINES, call.request.query_params.getlist("node")))


# --- pages ------------------------------------------------------------------------------------------------


async def _page(call: Call, wanted: Wanted) -> Response:
    limit = max(1, whole_query(call.request, "limit", DEFAULT, MOST))
    patience = whole_query(call.request, "wait", 0, LONGEST_WAIT)
    place = _place(one_query(call.request, "after"))
    run = await run_at(call)
    until = time.monotonic() + patience
    page = await _look(call, run, wanted, place, limit)
    if page.says_nothing and patience:
        with call.door.following(run.run) as news:
            while page.says_nothing and not call.door.stopping.is_set() and (left := until - time.monotonic()) > 0:
                await news.wait(min(left, LOOK_AGAIN))
                page = await _look(call, run, wanted, page.place, limit)
    return JSONResponse({"events": page.events, "cursor": str(page.place), "ended": page.ended})


@dataclass(frozen=True, slots=True)
class Page:
    """Events, where they end, and whether the run has ended and nothing comes behind them."""

    events: list[dict[str, Any]]
    place: Place
    ended: bool

    @property
    def says_nothing(self) -> bool:
        return not self.events and not self.ended


async def _look(call: Call, run: RunRow, wanted: Wanted, place: Place, limit: int) -> Page:
    """Up to so many events behind a place."""
    # Asked before the events are read: what had ended by then has its last event in them.
    ended = (await refreshed(call.door.store.database, run)).ended
    found: list[dict[str, Any]] = []
    async for stored in Cursor(call.door.store.database, run, place.seq, place.late).news():
        place = place.behind(stored)
        if wanted.has(stored):
            found.append({"cursor": str(place), **shown(call, event_json(stored))})
            if len(found) == limit:
                return Page(found, place, ended and stored.event["kind"] in TERMINAL)
    return Page(found, place, ended)


# --- server-sent events -----------------------------------------------------------------------------------


async def _stream(call: Call, wanted: Wanted) -> Response:
    last = call.request.headers.get("last-event-id") or one_query(call.request, "after")
    place = _place(last)
    run = await run_at(call)
    if run.ended and await _is_over(call, run, place):
        # The one answer after which a browser does not ask again.
        return Response(status_code=204)
    call.door.check_room()
    if call.request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return EventSourceResponse(_told(call, run, wanted, place), ping=PING, sep="\n", send_timeout=SEND_TIME)


async def _is_over(call: Call, run: RunRow, place: Place) -> bool:
    async for _ in Cursor(call.door.store.database, run, place.seq, place.late).news():
        return False
    return True


async def _told(call: Call, run: RunRow, wanted: Wanted, place: Place) -> AsyncIterator[ServerSentEvent]:
    """Every event until the run's end, the door's, or that of the caller's right."""
    cursor = Cursor(call.door.store.database, run, place.seq, place.late)
    asked = time.monotonic()
    try:
        with call.door.following(run.run) as news:
            while not call.door.stopping.is_set():
                async for stored in cursor.news():
                    place = place.behind(stored)
                    if wanted.has(stored):
                        text = json.dumps(shown(call, event_json(stored)), ensure_ascii=False)
                        yield ServerSentEvent(text, event=stored.event["kind"], id=str(place), sep="\n")
                if cursor.done or call.door.stopping.is_set():
                    return
                await news.wait(LOOK_AGAIN)
                if time.monotonic() - asked > ASK_AGAIN:
                    asked = time.monotonic()
                    (await caller(call.request)).needs("read")
                    await refreshed(call.door.store.database, run)
    except Refused as error:
        yield _said(error.code, error.message)
    except NotFound as error:
        yield _said(error.code, error.message)


def _said(code: str, message: str) -> ServerSentEvent:
    return ServerSentEvent(json.dumps({"error": {"code": code, "message": message}}), event="refused", sep="\n")
