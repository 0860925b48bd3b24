"""The rules that hold always, checked on a live database: each is one statement, and so sees one moment.

They read whole tables and every event, which takes its time on a large database and holds up nobody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)

_END_IT: Final = "End it and start it again: weft stop {run}"
_LOOK: Final = "What it did is in weft events {run}; weft clean deletes it in time"
_MISSED: Final = "End what it missed: weft stop {run}"
_FORGET: Final = "It does nothing any more. Delete the row: DELETE FROM weft.waits WHERE token = '{token}'"


@dataclass(frozen=True, slots=True)
class Rule:
    """`query` names the statement; `remedy` says what to do about a row, by its columns."""

    query: str
    says: str
    remedy: str


class Finding(NamedTuple):
    """A row that breaks a rule: its run, and what else the query shows of it."""

    rule: Rule
    project: int
    run: UUID
    detail: dict[str, Any]

    @property
    def remedy(self) -> str:
        return self.rule.remedy.format(run=self.run, **self.detail)


RULES: Final = (
    Rule("one_end", "a run has at most one terminal event", _LOOK),
    Rule("nothing_after_the_end", "nothing comes after the terminal event", _LOOK),
    Rule("end_and_journal", "a run has ended exactly when its journal says so, and in the same way", _END_IT),
    Rule("dense_numbers", "numbers are dense from 1 and end before next_seq", _END_IT),
    Rule("journal_there", "every run has a journal", _END_IT),
    Rule("something_to_do", "a live run has something to do, an ended one has nothing", _END_IT),
    Rule("waiting_for_something", "a waiting run waits for something, and nobody drives it", _END_IT),
    Rule("known_driver", "who drives a run is known, so that its lease can lapse", _END_IT),
    Rule("waits_of_ended", "nothing waits below an ended scope", _FORGET),
    Rule("waits_and_journal", "a wait was registered in the journal, and nothing there ends it", _END_IT),
    Rule("one_answer", "a wait ends once", _LOOK),
    Rule("ends_are_told", "an end that somebody waits for is going to be told", _END_IT),
    Rule("one_driver", "the run and the ready list name the same worker", _END_IT),
    Rule("run_and_scope", "a run and its scope end together", _END_IT),
    Rule("nothing_live_below", "nothing is live below an ended scope", _END_IT),
    Rule("tree", "a scope knows its depth, its children and the nearest deadline", _END_IT),
    Rule("firings_of_ended", "every firing that started in an ended run has its end", _LOOK),
    Rule("open_firings", "the open firings of a run are those that started and have not ended", _END_IT),
    Rule("live_tags", "a tag is live exactly while its run is", _LOOK),
    Rule("order_of_tags", "no two runs share a place in a tag's order", _END_IT),
    Rule("stops_done", "a stop that is done has left nothing of what it reaches", _MISSED),
)


async def findings(conn: Connection) -> AsyncIterator[Finding]:
    """Every row that breaks a rule, rule by rule. Changes nothing."""
    for rule in RULES:
        # Row by row: where much is wrong it need not be in memory together.
        async with conn.transaction():
            async for row in conn.cursor(getattr(_SQL, rule.query)):
                detail = dict(row)
                yield Finding(rule, detail.pop("project"), detail.pop("run"), detail)
