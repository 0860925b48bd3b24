"""One `await_signal` between the author's words and the record: what it asks for, and what came of it.

The engine and the rig turn an `Asked` into a registered suspension; here nothing is kept and no clock is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from weft.errors import NodeError, WaitTimedOut
from weft.flow.events import Mode, SuspensionResolved
from weft.flow.suspension import Suspension, WokenBy
from weft.flow.values import fresh
from weft.nodes.firing.ports import encoded
from weft.nodes.waits import (
    AllOf,
    First,
    FirstOf,
    Timer,
    Wait,
    WaitKind,
    WebhookRequest,
    checked_timeout,
    spoken,
)
from weft.rules.waits import after, instant, instant_text


@dataclass(frozen=True, slots=True)
class Part:
    """One wait to register. It is due at an instant, some time after its first registration, or never."""

    kind: WaitKind
    spec: dict[str, Any]
    after: timedelta | None = None
    at: datetime | None = None

    def due(self, now: datetime) -> datetime | None:
        """When a timer fires and any other wait times out, for a first registration at `now`."""
        return self.at if self.after is None else after(now, self.after)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a parked body waits for. `registered`: it is on record already, so there is nothing to register."""

    call: int
    parts: tuple[Part, ...]
    mode: Mode
    registered: bool

    def waits(self, token: Callable[[int], str], now: datetime) -> tuple[dict[str, Any], ...]:
        """The waits of the `SuspensionRegistered`; `token` names a part by its place, `now` is the registration."""
        waits: list[dict[str, Any]] = []
        for place, part in enumerate(self.parts):
            wait: dict[str, Any] = {"token": token(place), "kind": part.kind, "spec": part.spec}
            due = part.due(now)
            if due is not None:
                wait["due"] = instant_text(due)
            waits.append(wait)
        return tuple(waits)


class Awaited:
    """The argument of one `await_signal`, checked."""

    __slots__ = ("mode", "timeout", "wait", "waits")

    def __init__(self, wait: Any, timeout: timedelta | None) -> None:
        """Raises NodeError for what is no wait, or takes no time-out."""
        if not isinstance(wait, Wait | FirstOf | AllOf):
            raise NodeError(
                f"await_signal takes a Form, Timer, Webhook or RunRef, not {wait!r}",
                hint="several at once are `first_of(…)` and `all_of(…)`",
            )
        self.wait = wait
        self.waits: tuple[Wait, ...] = wait.waits if isinstance(wait, FirstOf | AllOf) else (wait,)
        self.mode: Mode = "all" if isinstance(wait, AllOf) else "first"
        self.timeout = None if timeout is None else checked_timeout(timeout)
        if timeout is not None and all(isinstance(each, Timer) for each in self.waits):
            raise NodeError("a timer takes no time-out: it is over at its own time")

    def ask(self, call: int, limit: int, *, registered: bool) -> Asked:
        """Raises NodeError for a wait that is too large or cannot be stored; `limit` is in bytes."""
        return Asked(call, tuple(self._part(each, limit) for each in self.waits), self.mode, registered)

    def _part(self, wait: Wait, limit: int) -> Part:
        try:
            spec = encoded(wait.spec(), limit)[0]
        except ValueError as error:
            raise NodeError(f"{wait} cannot be stored: {error}") from None
        if isinstance(wait, Timer):
            return Part(wait.kind, spec, wait.after, wait.until)
        return Part(wait.kind, spec, self.timeout)

    def like(self, suspended: Suspension) -> bool:
        """Whether the suspension on record asks for the same kinds of waits, in the same way."""
        return self.mode == suspended.mode and self._kinds() == [each["kind"] for each in suspended.waits]

    def _kinds(self) -> list[str]:
        return [each.kind for each in self.waits]

    def outcome(self, woken: WokenBy) -> Any:
        """What the body gets for a suspension that is over. Raises WaitTimedOut."""
        if woken.kind == "timed_out":
            time = "in time" if self.timeout is None else f"within {spoken(self.timeout)}"
            raise WaitTimedOut(f"{self} did not come to an end {time}")
        values = [
            None if answer is None else _given(wait, answer)
            for wait, answer in zip(self.waits, woken.answers, strict=True)
        ]
        if self.mode == "all":
            return values
        index = next(at for at, each in enumerate(woken.answers) if each is not None and each.token == woken.token)
        return First(index, values[index]) if isinstance(self.wait, FirstOf) else values[index]

    def __str__(self) -> str:
        """As in: waits for …"""
        names = [str(each) for each in self.waits]
        joined = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        return joined if len(names) == 1 else f"{'all' if self.mode == 'all' else 'any'} of {joined}"


def _given(wait: Wait, resolution: SuspensionResolved) -> Any:
    value = fresh(resolution.value)
    match wait.kind:
        case "timer":
            return instant(value)
        case "webhook":
            return WebhookRequest(value["body"], value["headers"], value["query"])
        case _:
            return value


def described(suspended: Suspension) -> str:
    """As in: had waited for …"""
    kinds = [f"a {each['kind']}" for each in suspended.waits]
    return " and ".join(kinds) if suspended.mode == "all" else " or ".join(kinds)
