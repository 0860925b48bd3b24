"""How `weft run` follows its run through its waits: asks its forms, shows what it waits for, and says when only the
outside can help.

A run that waits leaves the process, and may go on in another; from then on its events are read from the store. Not
here: starting it and its end (`commands/run.py`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from weft.cli.asking.questions import LeftOpen, ask
from weft.cli.output import is_terminal, note
from weft.cli.progress import Progress
from weft.cli.speaking import answer_line, user, waits_text
from weft.errors import AlreadyAnswered, AnswerRefused, Conflict, NotFound
from weft.flow.events import Event, decode
from weft.service import waits
from weft.service.ids import find_run
from weft.service.listing import Cursor, RunKey, RunRow
from weft.service.waits import OpenForm
from weft.service.why import Waiting, Why, why

if TYPE_CHECKING:
    from weft.service.opening import Store
    from weft.service.running import Runtime

LOOK_AGAIN = 0.2
"""Seconds between two looks at the waits of a run."""


@dataclass(slots=True)
class Follower:
    """Follows one run with `look`, called again and again; a form may be asked in between."""

    store: Store
    progress: Progress
    asks: bool
    _cursors: dict[UUID, Cursor] = field(default_factory=dict)
    _asking: asyncio.Task[None] | None = None
    _form: str | None = None
    _left_open: set[str] = field(default_factory=set)
    _said: str | None = None
    _row: RunRow | None = None
    _next: float = 0.0

    @classmethod
    def of(cls, store: Store, runtime: Runtime, progress: Progress, *, json: bool) -> Follower:
        """With `json`, and without a terminal for keys and one for questions, nobody is asked."""
        asks = not json and is_terminal(sys.stdin) and is_terminal(sys.stderr)
        made = cls(store, progress, asks)
        runtime.on_parked(made.parked)
        return made

    def saved(self, run: UUID, events: Sequence[Event]) -> None:
        """These were saved by this process."""
        if run not in self._cursors:
            self.progress.saved(run, events)

    def parked(self, run: UUID, project: int, next_seq: int) -> None:
        self._cursors.setdefault(run, Cursor(self.store.database, RunKey(project, run), next_seq - 1))

    async def look(self, run: UUID) -> Why | None:
        """Shows what is new. How it stands with the run if only the outside can help now and nobody here is asked."""
        await self.news()
        if not (self._cursors or self.progress.has_waits) or time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + LOOK_AGAIN
        if self._row is None:
            self._row = await find_run(self.store.database, str(run))
        stands = await why(self.store.database, self._row)
        self._show(stands)
        await self._ask(stands)
        if stands.parked and not stands.by_time_alone and self._asking is None:
            return stands
        return None

    async def news(self) -> None:
        """Shows what the store says of runs that have left this process."""
        for run, cursor in list(self._cursors.items()):
            async for stored in cursor.news():
                self.progress.saved(run, [decode(stored.event)])

    def _show(self, stands: Why) -> None:
        timed = [each for each in stands.waits if each.due is not None]
        shows = stands.parked and stands.by_time_alone and bool(timed)
        text = waits_text(min(timed, key=lambda each: str(each.due))) if shows else None
        self.progress.waits = text
        if text is not None and text != self._said and not self.progress.live:
            self.progress.say(text)
        self._said = text

    async def _ask(self, stands: Why) -> None:
        if self._asking is not None and self._asking.done():
            await self._asking
            self._asking = self._form = None
        opened = [each.token for each in stands.forms if each.token not in self._left_open]
        if self._asking is not None and self._form not in opened:
            await self.withdraw()
            note("this is not asked any more: it was answered elsewhere, or is over")
        if self._asking is None and opened and self.asks:
            self._form = opened[0]
            self._asking = asyncio.create_task(self._ask_form(opened[0]))

    async def _ask_form(self, token: str) -> None:
        from weft.cli.asking.editor import editing

        try:
            form = await waits.form(self.store, token)
            self.progress.close()
            with editing() as editor:
                self.progress.typed = editor
                try:
                    await self._until_taken(form, await ask(form, editor))
                finally:
                    self.progress.typed = None
        except LeftOpen:
            self._left_open.add(token)
            note(f"left open: {answer_line(form)}")
        except AlreadyAnswered as error:
            note(f"{error.message}; this answer is not used")
        except (Conflict, NotFound) as error:
            note(error.message)

    async def _until_taken(self, form: OpenForm, answers: dict[str, object]) -> None:
        try:
            await waits.answer(self.store, form.token, answers, by=user())
        except AnswerRefused as error:
            self._left_open.add(form.token)
            note(f"{error.message}\nleft open: {answer_line(form)}", "yellow")

    async def withdraw(self) -> None:
        """Asks nothing any more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
            self._asking = self._form = None


def outside(stands: Why) -> list[Waiting]:
    """What of its waits only the outside can end."""
    ends_outside = [
        each for each in stands.waits if each.kind in ("form", "webhook") or each.target in stands.elsewhere
    ]
    return ends_outside or list(stands.waits)
