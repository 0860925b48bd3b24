"""How a body that has to wait becomes events and waits: pure, but for the clock and the secret that it is given.

When a run then leaves this process, and how it comes back: `executor.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from weft.flow.events import Error, Key, NodeRetryScheduled, SuspensionRegistered
from weft.flow.texts import to_json
from weft.lang.metadata import Retry
from weft.nodes.firing.suspending import Asked
from weft.rules.waits import after, instant, instant_text, retry_due, token
from weft.store.runs.waits import NewWait


@dataclass(frozen=True, slots=True)
class Registrar:
    """Makes the waits of one run. `secret` is the database's; it makes tokens that nobody guesses."""

    secret: bytes
    run: UUID

    def suspension(self, key: Key, asked: Asked, now: datetime) -> tuple[SuspensionRegistered, list[NewWait]]:
        """What a body that leaves by `Parked` has to have registered. `now` is the store's clock."""
        node, frames = key
        waits = asked.waits(lambda part: token(self.secret, self.run, node, frames, asked.call, part), now)
        event = SuspensionRegistered(node, frames, asked.call, waits, asked.mode)
        rows = [self._row(key, asked.call, part, wait, asked.mode) for part, wait in enumerate(waits)]
        return event, rows

    def back_off(
        self, key: Key, retry: Retry, attempt: int, error: Error, now: datetime
    ) -> tuple[NodeRetryScheduled, NewWait]:
        """The rest after try number `attempt` (from 1) failed."""
        node, frames = key
        due = after(now, retry_due(retry, attempt))
        name = token(self.secret, self.run, node, frames, -attempt, 0)
        event = NodeRetryScheduled(node, frames, attempt, name, instant_text(due), error)
        return event, NewWait(node, to_json(frames), -attempt, 0, name, "retry", due=instant(event.due))

    def _row(self, key: Key, call: int, part: int, wait: Mapping[str, Any], mode: Any) -> NewWait:
        node, frames = key
        spec = wait["spec"]
        return NewWait(
            node,
            to_json(frames),
            call,
            part,
            wait["token"],
            wait["kind"],
            spec=to_json(spec),
            mode=mode,
            target=UUID(spec["run"]) if wait["kind"] == "run" else None,
            due=instant(wait["due"]) if "due" in wait else None,
        )
