"""What a body may wait for, in the author's words, and what it gets when the wait is over.

Plain values that check themselves: a wait that nobody could keep is refused where it is written. Not here: the
fields of a form (`fields.py`), and what `ctx.await_signal` makes of a wait (`suspending.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, NamedTuple

from weft.errors import NodeError

WaitKind = Literal["form", "timer", "webhook", "run"]

LONGEST: Final = timedelta(days=36_525)
"""Of a timer and of a time-out: a hundred years."""


class _Value:
    """Equal by its parts, and never changed. Every process that loads the nodes makes these classes, and dataclasses
    cost ten times that."""

    __slots__: tuple[str, ...] = ()

    def _hold(self, **parts: Any) -> None:
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def _parts(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: make another one")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._parts() == self._parts()

    def __hash__(self) -> int:
        return hash((type(self), self._parts()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()!r}"


class Form(_Value):
    """Questions to a person. `fields` come from the builders of `weft.forms`; without any the form asks for a
    look only.

    Awaiting it gives the answers as a dict, one entry a field that asks something.
    """

    __slots__ = ("description", "fields", "title")

    kind: ClassVar[WaitKind] = "form"
    title: str
    fields: tuple[Mapping[str, Any], ...]
    description: str | None

    def __init__(self, title: str, fields: Sequence[Mapping[str, Any]] = (), description: str | None = None) -> None:
        from weft.nodes.fields import check_fields

        if not isinstance(title, str) or not title.strip():
            raise NodeError(f"a form has a title, not {title!r}")
        if description is not None and not isinstance(description, str):
            raise NodeError(f"the description of the form {title!r} is a text, not {description!r}")
        self._hold(title=title, fields=check_fields(fields), description=description)

    def spec(self) -> dict[str, Any]:
        """`{"title", "description"?, "fields": [...]}`."""
        described = {} if self.description is None else {"description": self.description}
        return {"title": self.title, **described, "fields": [dict(field) for field in self.fields]}

    def __str__(self) -> str:
        return f"the form “{self.title}”"


class Timer(_Value):
    """Some time (`after`, counted from when the body first comes here) or an instant (`until`: a datetime or an
    ISO 8601 text, either with an offset).

    An instant that is over already wakes at once. Awaiting it gives the instant at which it woke, in UTC.
    """

    __slots__ = ("after", "until")

    kind: ClassVar[WaitKind] = "timer"
    after: timedelta | None
    until: datetime | None

    def __init__(self, after: timedelta | None = None, until: datetime | str | None = None) -> None:
        if (after is None) is (until is None):
            raise NodeError("a timer has either `after` or `until`", hint="write `Timer(after=timedelta(days=3))`")
        if after is not None:
            _check_span(after, "`after` of a timer", timedelta(0))
        self._hold(after=after, until=None if until is None else _until(until))

    def spec(self) -> dict[str, Any]:
        """`{"after": seconds}` or `{"until": ISO instant}`."""
        from weft.rules.waits import instant_text

        if self.until is not None:
            return {"until": instant_text(self.until)}
        assert self.after is not None
        return {"after": self.after.total_seconds()}

    def __str__(self) -> str:
        return f"the timer of {spoken(self.after)}" if self.after is not None else f"the timer until {self.until}"


def _until(until: datetime | str) -> datetime:
    from weft.rules.waits import instant

    try:
        return instant(until)
    except ValueError as error:
        raise NodeError(f"`until` of a timer: {error}") from None


class Webhook(_Value):
    """A request from outside to an address of this wait's own. Awaiting it gives a `WebhookRequest`."""

    __slots__ = ()

    kind: ClassVar[WaitKind] = "webhook"

    def spec(self) -> dict[str, Any]:
        return {}

    def __str__(self) -> str:
        return "the webhook"


class RunRef(_Value):
    """A run that `ctx.start_run` started. Awaiting it gives `{"run", "status", "reason"}`, however it ended."""

    __slots__ = ("run",)

    kind: ClassVar[WaitKind] = "run"
    run: str

    def __init__(self, run: str) -> None:
        self._hold(run=run)

    def spec(self) -> dict[str, Any]:
        return {"run": self.run}

    def __str__(self) -> str:
        return f"the run {self.run}"


Wait = Form | Timer | Webhook | RunRef


class FirstOf(_Value):
    """What `first_of` makes. Awaiting it gives a `First`."""

    __slots__ = ("waits",)

    waits: tuple[Wait, ...]

    def __init__(self, waits: tuple[Wait, ...]) -> None:
        self._hold(waits=waits)


class AllOf(_Value):
    """What `all_of` makes. Awaiting it gives what each gave, as a list in their order."""

    __slots__ = ("waits",)

    waits: tuple[Wait, ...]

    def __init__(self, waits: tuple[Wait, ...]) -> None:
        self._hold(waits=waits)


class First(NamedTuple):
    """Which of the waits of `first_of` was over first, counted from 0, and what it gave."""

    which: int
    value: Any


class WebhookRequest(NamedTuple):
    """What came to a webhook: the body as JSON, fields or text, and headers (names in lower case) and query as
    texts."""

    body: Any
    headers: dict[str, str]
    query: dict[str, str]


def first_of(*waits: Wait) -> FirstOf:
    """A wait that is over with the first of these; the others are dropped with it."""
    return FirstOf(_parts("first_of", waits))


def all_of(*waits: Wait) -> AllOf:
    """A wait that is over when each of these is."""
    return AllOf(_parts("all_of", waits))


def _parts(name: str, waits: tuple[Wait, ...]) -> tuple[Wait, ...]:
    for each in waits:
        if not isinstance(each, Wait):
            raise NodeError(f"{name} takes forms, timers, webhooks and runs, not {each!r}")
    if not waits:
        raise NodeError(f"{name} takes at least one wait")
    return waits


def checked_timeout(timeout: timedelta) -> timedelta:
    """The time-out itself. Raises NodeError for one that is no positive length of time."""
    return _check_span(timeout, "a time-out", timedelta(microseconds=1))


def _check_span(span: Any, what: str, least: timedelta) -> timedelta:
    if not isinstance(span, timedelta):
        raise NodeError(f"{what} is a timedelta, not {span!r}", hint="write `timedelta(seconds=30)`")
    if span < least:
        raise NodeError(f"{what} is {span.total_seconds():g} seconds: it must be {'0 or ' * (not least)}more")
    if span > LONGEST:
        raise NodeError(f"{what} is {span.days:,} days: a hundred years are the most")
    return span


def spoken(span: timedelta) -> str:
    """A length of time as a person says it, its two largest parts: `2 days 3 hours`, `1.5 seconds`."""
    whole = int(span.total_seconds())
    if whole < 60:
        seconds = f"{span.total_seconds():.3f}".rstrip("0").rstrip(".")
        return f"{seconds} second{'s' * (seconds != '1')}"
    parts: list[str] = []
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count:,} {name}{'s' * (count != 1)}")
    return " ".join(parts[:2])
