"""What a parked firing waits on, and when that is over.

Data and the rule of "first of" and "all of". How ends of waits come about (answers, timers, children) is the
store's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from weft.flow.events import Mode, NodeRetryScheduled, SuspensionResolved

RETRY: Final = "retry"
"""The kind of the wait between two tries of a body."""


@dataclass(frozen=True, slots=True)
class WokenBy:
    """How a suspension ended: `token` is of the wait whose end decided, `answers` are those of all its waits.

    The answers stand in the order of the waits; None is one that had not ended by then.
    """

    kind: Literal["answered", "timed_out", "skipped"]
    token: str
    answers: tuple[SuspensionResolved | None, ...]


class Suspension:
    """One `await_signal` call, or one back-off.

    `waits` are as in `SuspensionRegistered`; `answers` holds the end of each wait that has ended, by token;
    `outcome` is None while the suspension is open.
    """

    __slots__ = ("answers", "mode", "outcome", "waits")

    def __init__(self, waits: Sequence[dict[str, Any]], mode: Mode = "first") -> None:
        self.waits = tuple(waits)
        self.mode = mode
        self.answers: dict[str, SuspensionResolved] = {}
        self.outcome: WokenBy | None = None

    @classmethod
    def of_retry(cls, event: NodeRetryScheduled) -> Suspension:
        return cls(({"token": event.token, "kind": RETRY, "due": event.due},))

    @property
    def tokens(self) -> list[str]:
        return [wait["token"] for wait in self.waits]

    @property
    def unanswered(self) -> list[str]:
        """The tokens of the waits that have not ended: once the suspension is over, those of its losers."""
        return [token for token in self.tokens if token not in self.answers]

    def resolve(self, event: SuspensionResolved) -> None:
        """Take the end of one wait. The first that decides counts; what comes later is dropped.

        A form that was skipped and a wait that timed out end the whole suspension, whatever its mode.
        """
        if self.outcome is not None or event.token in self.answers:
            return
        self.answers[event.token] = event
        if event.skipped:
            self._over("skipped", event.token)
        elif event.timed_out:
            self._over("timed_out", event.token)
        elif self.mode == "first" or not self.unanswered:
            self._over("answered", event.token)

    def _over(self, kind: Literal["answered", "timed_out", "skipped"], token: str) -> None:
        self.outcome = WokenBy(kind, token, tuple(self.answers.get(each) for each in self.tokens))

    def __repr__(self) -> str:
        return f"<Suspension {self.mode} of {len(self.waits)}, {self.outcome.kind if self.outcome else 'open'}>"
