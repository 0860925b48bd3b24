"""Waits as values: what they refuse, how they are registered, and how retries are declared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from weft import (
    ExecutionContext,
    Form,
    Node,
    NodeError,
    Retry,
    Timer,
    WaitTimedOut,
    Webhook,
    all_of,
    first_of,
    node,
    node_error,
)
from weft.errors import DivergedAfterCrash, EmissionError, NodeFileError, Parked
from weft.nodes.api import node_class
from weft.nodes.firing.failures import is_worth_another_try
from weft.nodes.firing.suspending import Asked, Awaited
from weft.nodes.reading.describe import describe
from weft.nodes.reading.spec import spec_of
from weft.nodes.waits import spoken

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def asked(wait: Any, timeout: timedelta | None = None) -> Asked:
    return Awaited(wait, timeout).ask(3, 1_000_000, registered=False)


def registered(wait: Any, timeout: timedelta | None = None) -> list[tuple[str, str, Any]]:
    waits = asked(wait, timeout).waits(lambda place: f"t{place}", NOW)
    return [(each["token"], each["kind"], each.get("due")) for each in waits]


def test_waits_are_equal_by_their_parts_and_never_changed() -> None:
    assert Timer(until="2030-01-01T01:00:00+01:00") == Timer(until=NOW)
    assert len({Timer(until=NOW), Timer(until="2030-01-01T00:00:00Z"), Webhook(), Webhook()}) == 2
    assert Form("A") == Form("A", [])
    assert Form("A") != Form("A", description="")
    assert first_of(Webhook()) != all_of(Webhook())
    assert repr(Webhook()) == "Webhook()"
    with pytest.raises(AttributeError, match="cannot be changed"):
        Timer(until=NOW).until = None


def test_a_time_out_is_counted_from_the_registration_and_leaves_timers_alone() -> None:
    wait = first_of(Form("A"), Webhook(), Timer(after=timedelta(hours=1)), Timer(until="2029-01-01T00:00:00Z"))
    assert registered(wait, timedelta(days=3)) == [
        ("t0", "form", "2030-01-04T00:00:00.000Z"),
        ("t1", "webhook", "2030-01-04T00:00:00.000Z"),
        ("t2", "timer", "2030-01-01T01:00:00.000Z"),
        ("t3", "timer", "2029-01-01T00:00:00.000Z"),
    ]
    assert registered(Form("A")) == [("t0", "form", None)]


def test_the_mode_says_whether_one_is_enough() -> None:
    assert asked(Form("A")).mode == "first"
    assert asked(first_of(Form("A"), Form("B"))).mode == "first"
    assert asked(all_of(Form("A"), Form("B"))).mode == "all"


@pytest.mark.parametrize("wait", [Timer(after=timedelta(1)), all_of(Timer(after=timedelta(1)))])
def test_a_timer_takes_no_time_out(wait: Any) -> None:
    with pytest.raises(NodeError, match="a timer takes no time-out"):
        Awaited(wait, timedelta(1))


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(-1), timedelta(days=40_000), 5])
def test_a_time_out_is_a_length_of_time(timeout: Any) -> None:
    with pytest.raises(NodeError, match="a time-out is"):
        Awaited(Form("A"), timeout)


def test_a_form_that_is_too_large_or_unstorable_is_refused_by_name() -> None:
    for form in (Form("Big", description="x" * 100), Form("Bad", description="\0")):
        with pytest.raises(NodeError, match=f"the form “{form.title}” cannot be stored"):
            Awaited(form, None).ask(0, 100, registered=False)


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(0), "0 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(milliseconds=1500), "1.5 seconds"),
        (timedelta(seconds=90), "1 minute 30 seconds"),
        (timedelta(hours=1), "1 hour"),
        (timedelta(days=2, seconds=5), "2 days 5 seconds"),
        (timedelta(days=1, hours=2, minutes=3), "1 day 2 hours"),
    ],
)
def test_lengths_of_time_as_a_person_says_them(span: timedelta, said: str) -> None:
    assert spoken(span) == said


# --- retries ----------------------------------------------------------------------------------------------


class Plain(Node):
    """Do nothing."""

    async def run(self, ctx: ExecutionContext) -> None:
        pass


def with_retry(retry: Any) -> type[Node]:
    return type("Tries", (Plain,), {"__doc__": "Try.", "retry": retry, "__module__": __name__})


def test_a_retry_is_read_from_the_class_and_described() -> None:
    spec = spec_of(with_retry(Retry(attempts=5, max=timedelta(hours=1))))
    assert spec.retry == Retry(5, timedelta(seconds=1), timedelta(hours=1))
    assert describe(spec)["features"]["retry"] == {"attempts": 5, "firstSecs": 1.0, "maxSecs": 3600.0}
    assert "features" not in describe(spec_of(Plain))


def test_a_function_may_have_a_retry() -> None:
    @node(retry=Retry(attempts=2))
    async def flaky(text: str) -> str:
        """Fail at times."""
        return text

    assert spec_of(node_class(flaky)).retry == Retry(attempts=2)


@pytest.mark.parametrize(
    ("retry", "words"),
    [
        (3, "is a Retry, not 3"),
        (Retry(attempts=0), "at least once"),
        (Retry(attempts=True), "at least once"),
        (Retry(attempts=1.5), "at least once"),  # type: ignore[arg-type]
        (Retry(first=timedelta(-1)), "`first` of retry"),
        (Retry(max=60), "`max` of retry"),  # type: ignore[arg-type]
        (Retry(max=timedelta(days=400)), "`max` of retry"),
    ],
)
def test_a_retry_that_makes_no_sense_is_refused(retry: Any, words: str) -> None:
    with pytest.raises(NodeFileError, match=words):
        spec_of(with_retry(retry))


def test_context_added_to_an_error_does_not_make_it_worth_another_try() -> None:
    with pytest.raises(NodeError, match="asking: nobody came") as failed, node_error("asking"):
        raise WaitTimedOut("nobody came")
    assert not is_worth_another_try(failed.value)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ValueError("x"), True),
        (NodeError("x"), True),
        (EmissionError("x"), True),
        (NodeError("x", retry=False), False),
        (WaitTimedOut("x"), False),
        (DivergedAfterCrash("x"), False),
        (KeyboardInterrupt(), False),
        (Parked(), False),
    ],
)
def test_what_is_worth_another_try(error: BaseException, again: bool) -> None:
    assert is_worth_another_try(error) is again
