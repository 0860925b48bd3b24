"""Events packed into journal rows: what one commit of a run holds is one row, cut where it grows too long.

Pure: from encoded events to the arrays that a statement unnests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

ROW_LIMIT: Final = 256 * 1024
"""Characters of events in a journal row. A single event that is longer has a row of its own."""


def as_row(events: Sequence[str]) -> str:
    """Encoded events as the JSON array that a row holds."""
    return f"[{','.join(events)}]"


def fits_one_row(events: Sequence[str]) -> bool:
    return len(events) == 1 or 0 < sum(map(len, events)) <= ROW_LIMIT


@dataclass(slots=True)
class Rows:
    """Journal rows for many runs. `owner` is the run's place in the batch, from 1; `offset` counts events from 0."""

    owner: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    count: list[int] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def add(self, owner: int, offset: int, events: Sequence[str]) -> None:
        self.owner.append(owner)
        self.offset.append(offset)
        self.count.append(len(events))
        self.events.append(as_row(events))


def pack(batch: Iterable[Sequence[str]]) -> Rows:
    """The rows for each run's events, in order."""
    rows = Rows()
    for owner, events in enumerate(batch, start=1):
        if not events:
            continue
        if fits_one_row(events):
            rows.add(owner, 0, events)
            continue
        begin = size = 0
        for at, event in enumerate(events):
            if at > begin and size + len(event) > ROW_LIMIT:
                rows.add(owner, begin, events[begin:at])
                begin, size = at, 0
            size += len(event)
        rows.add(owner, begin, events[begin:])
    return rows
