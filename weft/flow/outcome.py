"""How a run ends when nothing runs and nothing is due, in the words that a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weft.flow.firing import Firing, name_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """`error` is None exactly where the run completed. A stuck run has failed too; its kind says how."""

    kind: Literal["completed", "failed", "stuck"]
    error: str | None = None


COMPLETED = Outcome("completed")


def outcome_of(failures: Sequence[Firing], waiting: Sequence[Firing]) -> Outcome:
    """From the failed firings, the earliest first, and those that wait for what never comes."""
    failed = _failed(failures) if failures else None
    if waiting:
        stuck = _stuck(waiting)
        return Outcome("stuck", f"{failed}\n{stuck}" if failed else stuck)
    return Outcome("failed", failed) if failed else COMPLETED


def _failed(failures: Sequence[Firing]) -> str:
    first = failures[0]
    message = first.failure.error["message"] if first.failure else ""
    more = len(failures) - 1
    also = "" if not more else f" (and {more} more firing{'s' if more > 1 else ''} failed)"
    return f"{name_of(first.key)} {first.status}: {message}{also}"


def _stuck(waiting: Sequence[Firing]) -> str:
    lines = ["the run is stuck: nothing runs, and these firings wait for values that never come"]
    lines += [_waits(firing) for firing in sorted(waiting, key=lambda each: (each.plan.order, each.key[1]))]
    return "\n".join(lines)


def _waits(firing: Firing) -> str:
    held = [
        port if port in firing.values else f"{port} (closed)" for port in firing.plan.awaits if _settled(firing, port)
    ]
    empty = [f"{port} (from {source})" for port, source in firing.plan.awaits.items() if not _settled(firing, port)]
    return f"  {name_of(firing.key)} holds {', '.join(held) or 'nothing'}; still empty: {', '.join(empty)}"


def _settled(firing: Firing, port: str) -> bool:
    return port in firing.values or port in firing.closed
