"""How the waits of a body end in the rig: signals that a test has queued, and a clock that only waits move."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from weft.flow.events import SuspensionResolved
from weft.flow.suspension import Suspension
from weft.nodes import forms
from weft.nodes.firing.ports import encoded
from weft.nodes.waits import WebhookRequest
from weft.rules.waits import instant, instant_text

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""Where a rig's time begins, so that a test can name instants."""

_STATUSES: Final = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class _Signal:
    kind: Literal["value", "skip", "time-out"]
    payload: Any = None
    to: int | None = None


class Signals:
    """What a test has queued, in order."""

    def __init__(self) -> None:
        self.now = START
        self._queue: deque[_Signal] = deque()

    def queue(self, payload: Any, to: int | None) -> None:
        self._queue.append(_Signal("value", payload, to))

    def queue_skip(self) -> None:
        self._queue.append(_Signal("skip"))

    def queue_time_out(self) -> None:
        self._queue.append(_Signal("time-out"))

    def end(self, suspension: Suspension, node: str, call: int) -> None:
        """End the suspension, or leave it open where nothing is queued and nothing in it has its time.

        Raises AssertionError for a signal that the wait would refuse.
        """
        while suspension.outcome is None:
            open_waits = [wait for wait in suspension.waits if wait["token"] in suspension.unanswered]
            signal = self._next(open_waits)
            if signal is not None and signal.kind != "time-out":
                wait = _taker(signal, suspension, open_waits, node)
                if signal.kind == "skip":
                    end = SuspensionResolved(node, (), call, wait["token"], by="test", skipped=True)
                else:
                    end = SuspensionResolved(
                        node, (), call, wait["token"], stored_value(signal.payload, wait, node), "test"
                    )
            else:
                timed = [wait for wait in open_waits if "due" in wait]
                if not timed:
                    if signal is not None:
                        raise AssertionError(f"`{node}` waits without a time-out, and the test lets it time out")
                    return
                end = self._let_pass(min(timed, key=lambda wait: instant(wait["due"])), node, call)
            suspension.resolve(end)

    def _next(self, open_waits: list[dict[str, Any]]) -> _Signal | None:
        """The signal that is next, where one of the waits takes any."""
        takes = any(wait["kind"] != "timer" for wait in open_waits)
        return self._queue.popleft() if takes and self._queue else None

    def _let_pass(self, wait: dict[str, Any], node: str, call: int) -> SuspensionResolved:
        self.now = max(self.now, instant(wait["due"]))
        if wait["kind"] == "timer":
            return SuspensionResolved(node, (), call, wait["token"], instant_text(self.now), "timer")
        return SuspensionResolved(node, (), call, wait["token"], by="timer", timed_out=True)


def _taker(signal: _Signal, suspension: Suspension, open_waits: list[dict[str, Any]], node: str) -> dict[str, Any]:
    """The wait that a signal is for."""
    if signal.to is not None:
        if signal.to >= len(suspension.waits) or suspension.waits[signal.to] not in open_waits:
            raise AssertionError(f"a signal is for wait number {signal.to}, which `{node}` does not wait for")
        wait: dict[str, Any] = suspension.waits[signal.to]
    else:
        wait = next(wait for wait in open_waits if wait["kind"] != "timer")
    if wait["kind"] == "timer":
        raise AssertionError(f"`{node}` waits for a timer there, which takes no signal")
    if signal.kind == "skip" and wait["kind"] != "form":
        raise AssertionError(f"`{node}` waits for a {wait['kind']} there, and only a form can be skipped")
    return wait


def stored_value(payload: Any, wait: Mapping[str, Any], node: str) -> Any:
    """What the wait's record holds for a signal. Raises AssertionError where it would be refused."""
    spec = wait["spec"]
    match wait["kind"]:
        case "form":
            answers = forms.normalise(spec, payload) if isinstance(payload, Mapping) else payload
            wrong = forms.problems(spec, answers)
            if wrong:
                reasons = "; ".join(f"{key}: {reason}" if key else reason for key, reason in wrong.items())
                raise AssertionError(f"the form of `{node}` does not take the signal {payload!r}: {reasons}")
            value: Any = answers
        case "webhook":
            request = payload if isinstance(payload, WebhookRequest) else WebhookRequest(payload, {}, {})
            value = request._asdict()
        case _:
            value = {"run": spec["run"], "reason": None, **payload} if isinstance(payload, Mapping) else payload
            if not isinstance(value, dict) or value.get("status") not in _STATUSES or len(value) != 3:
                raise AssertionError(
                    f"`{node}` waits for a run, which ends with a status (one of {', '.join(_STATUSES)}) and perhaps a "
                    f"reason, not with {payload!r}"
                )
    return encoded(value, limit=2**31)[0]
