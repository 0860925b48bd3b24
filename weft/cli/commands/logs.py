"""`weft logs`: what a run's nodes logged, what they cost, what failed, and how it ended."""

from __future__ import annotations

from weft.cli.lines import iso
from weft.cli.output import Output, note
from weft.cli.progress import NEWS, news_text
from weft.cli.session import current_project, opened
from weft.service.ids import find_run, short
from weft.service.listing import TERMINAL, Cursor, StoredEvent, newest_run
from weft.service.shapes import event_json


async def logs(piece: str | None, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        if piece is None:
            run = await newest_run(store.database, current_project().id)
            note(f"run {run.run}")
        else:
            run = await find_run(store.database, piece)
        cursor = Cursor(store.database, run)
        async for stored in cursor.news():
            print_news(out, stored)
        out.flush()
        if not cursor.done:
            note(f"hint: it goes on: weft follow {short(run.run)}")
    return 0


def print_news(out: Output, stored: StoredEvent) -> None:
    """Print an event if it is news; the end of a run counts unless all went well."""
    event = stored.event
    if event["kind"] in NEWS:
        if out.json:
            out.value(event_json(stored))
        else:
            text, colour = news_text(event)
            out.line(f"{iso(stored.at)} {text}", colour)
    elif event["kind"] in TERMINAL and not out.json:
        why = event.get("error") or event.get("reason")
        if why:
            out.line(f"{iso(stored.at)} {event['kind'].removeprefix('execution_')}: {why}", "red")
