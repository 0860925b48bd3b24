"""A run's state as JSON and back, so that a run that wakes need not read its journal from the start.

What is written depends on the plan, which is not: whoever restores gives the same program and selection. Of a
firing that has ended only how it ended is kept, since nothing more can come of it; what is due is judged anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final, cast

from weft.flow.board import Board
from weft.flow.events import Ending, Frames, Key, RunOutput, SuspensionResolved, decode, encode
from weft.flow.firing import CLOSED, Failure, Firing, Status
from weft.flow.suspension import Suspension

VERSION: Final = 1


def written(state: Board) -> dict[str, Any]:
    """The state as JSON values. It shares them with the state: make a text of it before the next event."""
    failures = _Failures()
    completed: list[Any] = []
    skipped: dict[str, list[Any]] = {}
    waiting: list[dict[str, Any]] = []
    for firing in state.firings.values():
        match firing.status:
            case "completed":
                completed.append(_place(firing.key))
            case "skipped":
                skipped.setdefault(firing.reason or "", []).append(_place(firing.key))
            case "waiting" | "due":
                closed = {port: failures.number(failure) for port, failure in firing.closed.items()}
                waiting.append(
                    _filled(at=_place(firing.key), awaited=firing.awaited, values=firing.values, closed=closed)
                )
    failed = [[_place(each.key), each.status, each.reason, failures.number(each.failure)] for each in state.failures]
    return {
        "version": VERSION,
        "started": state.started,
        "ended": state.ended and json.loads(encode(state.ended)),
        "completed": completed,
        "skipped": skipped,
        "failed": failed,
        "waiting": waiting,
        "running": [_open(firing) for firing in state.running.values()],
        "parked": [_open(firing) for firing in state.parked.values()],
        "failures": failures.told,
    }


def read_into(state: Board, data: dict[str, Any]) -> None:
    """Make a new state what `written` told of. ValueError where another version of weft wrote it."""
    if data.get("version") != VERSION:
        raise ValueError(f"a snapshot of version {data.get('version')!r} cannot be read here, only of {VERSION}")
    failures = [Failure(*_key(place), error) for place, error in data["failures"]]
    state.started = data["started"]
    for place in data["completed"]:
        _ended(state, place, "completed")
    for reason, places in data["skipped"].items():
        for place in places:
            _ended(state, place, "skipped").reason = reason
    for place, status, reason, number in data["failed"]:
        firing = _ended(state, place, status)
        firing.reason = reason
        firing.failure = failures[number]
        state.failures.append(firing)
    for told in data["running"]:
        firing = _opened(state, told, "running")
        state.running[firing.key] = firing
    for told in data["parked"]:
        firing = _opened(state, told, "parked")
        on = told["parked_on"]
        firing.parked_on = firing.suspensions[on] if isinstance(on, int) else _suspension(firing, on)
        state.parked[firing.key] = firing
    for told in data["waiting"]:
        firing = state.reached(_key(told["at"]))
        firing.awaited = told["awaited"]
        firing.values = told.get("values", {})
        closed = told.get("closed", {})
        firing.closed = {port: None if number is None else failures[number] for port, number in closed.items()}
    state.ended = cast(Ending, decode(data["ended"])) if data["ended"] else None
    state.judge_anew()


class _Failures:
    """Each failure once, by number: many closures carry the same."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, failure: Failure | None) -> int | None:
        if failure is None:
            return None
        number = self._numbers.setdefault(id(failure), len(self.told))
        if number == len(self.told):
            self.told.append([_place((failure.node, failure.frames)), failure.error])
        return number


def _filled(**parts: Any) -> dict[str, Any]:
    """The parts without those that are empty, but for a number."""
    return {name: part for name, part in parts.items() if part or type(part) is int}


def _place(key: Key) -> list[int | str]:
    return [key[0], *key[1]]


def _key(place: list[Any]) -> tuple[str, Frames]:
    return place[0], tuple(place[1:])


def _ended(state: Board, place: list[Any], status: Status) -> Firing:
    firing = state.reached(_key(place))
    firing.status = status
    firing.awaited = 0
    return firing


# --- a firing whose body is to run again ------------------------------------------------------------------


def _open(firing: Firing) -> dict[str, Any]:
    on = firing.parked_on
    return _filled(
        at=_place(firing.key),
        values=firing.values,
        calls=[[[port] if value is CLOSED else [port, value] for port, value in call] for call in firing.calls],
        outputs=[_told(output) for output in firing.outputs.values()],
        suspensions=[[call, _told_of(each)] for call, each in firing.suspensions.items()],
        early=[_told(event) for event in (firing.early or {}).values()],
        logged=firing.logged,
        attempts=firing.attempts,
        parked_on=on and next((call for call, each in firing.suspensions.items() if each is on), _told_of(on)),
    )


def _opened(state: Board, told: dict[str, Any], status: Status) -> Firing:
    firing = state.reached(_key(told["at"]))
    firing.status = status
    firing.awaited = 0
    firing.values = told.get("values", {})
    for call in told.get("calls", ()):
        firing.calls.append(tuple((port, value[0] if value else CLOSED) for port, *value in call))
    firing.sent = {port: value for call in firing.calls for port, value in call}
    outputs = [RunOutput(*firing.key, **output) for output in told.get("outputs", ())]
    firing.outputs = {output.call: output for output in outputs}
    firing.suspensions = {call: _suspension(firing, each) for call, each in told.get("suspensions", ())}
    firing.early = {event.token: event for event in _answers(firing, told.get("early", ()))} or None
    firing.logged = told["logged"]
    firing.attempts = told["attempts"]
    return firing


def _told_of(suspension: Suspension) -> dict[str, Any]:
    answers = [_told(event) for event in suspension.answers.values()]
    return _filled(waits=list(suspension.waits), mode=suspension.mode, answers=answers)


def _suspension(firing: Firing, told: dict[str, Any]) -> Suspension:
    suspension = Suspension(told["waits"], told["mode"])
    for event in _answers(firing, told.get("answers", ())):
        suspension.resolve(event)
    return suspension


def _answers(firing: Firing, told: Iterable[dict[str, Any]]) -> list[SuspensionResolved]:
    return [SuspensionResolved(*firing.key, **each) for each in told]


def _told(event: RunOutput | SuspensionResolved) -> dict[str, Any]:
    """The parts of an event that are not as they are by default, without the firing's key."""
    return {name: value for name, default in _PARTS[type(event)] if (value := getattr(event, name)) is not default}


_PARTS: Final = {
    cls: [(each.name, each.default) for each in fields(cls) if each.name not in ("node", "frames", "text")]
    for cls in (RunOutput, SuspensionResolved)
}
