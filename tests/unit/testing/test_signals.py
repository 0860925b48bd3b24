"""How a test ends the waits of a body: signals in turn, skips, time-outs and the rig's own time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from weft import (
    ExecutionContext,
    Form,
    Node,
    NodeOutput,
    RunRef,
    Timer,
    Webhook,
    WebhookRequest,
    all_of,
    first_of,
    forms,
)
from weft.testing import Rig

NAME = Form("Name?", [forms.text_input("name")])
DAY = timedelta(days=1)


def told(came: Any) -> Any:
    if isinstance(came, datetime):
        return came.isoformat()
    return [told(each) for each in came] if isinstance(came, tuple | list) else came


def waiting(wait: Any, timeout: timedelta | None = None) -> type[Node]:
    class Waits(Node):
        """Wait and tell what came."""

        class Outputs:
            value: Any

        async def run(self, ctx: ExecutionContext) -> None:
            came = await ctx.await_signal(wait, timeout)
            await ctx.pulse_downstream(NodeOutput(value=told(came)))

    return Waits


async def test_signals_are_taken_in_turn_over_several_runs(rig: Rig) -> None:
    rig.signal({"name": "Ann"})
    rig.signal({"name": "Bob"})
    node = waiting(NAME)
    assert (await rig.run(node)).outputs == {"value": {"name": "Ann"}}
    assert (await rig.run(node)).outputs == {"value": {"name": "Bob"}}
    assert [each["kind"] for each in (await rig.run(node)).waiting] == ["form"]


async def test_time_goes_on_only_where_a_body_waits_for_it(rig: Rig) -> None:
    assert rig.now == datetime(2030, 1, 1, tzinfo=UTC)
    assert (await rig.run(waiting(Timer(after=3 * DAY)))).outputs == {"value": "2030-01-04T00:00:00+00:00"}
    assert rig.now == datetime(2030, 1, 4, tzinfo=UTC)
    rig.signal({"name": "Ann"})
    await rig.run(waiting(NAME, timeout=DAY))
    assert rig.now == datetime(2030, 1, 4, tzinfo=UTC)
    rig.now = datetime(2031, 1, 1, tzinfo=UTC)
    assert (await rig.run(waiting(Timer(until="2030-06-01T00:00:00Z")))).outputs == {
        "value": "2031-01-01T00:00:00+00:00"
    }


async def test_a_timer_takes_no_signal_from_the_queue(rig: Rig) -> None:
    rig.signal({"name": "Ann"})
    await rig.run(waiting(Timer(after=DAY)))
    assert (await rig.run(waiting(NAME))).outputs == {"value": {"name": "Ann"}}


async def test_a_signal_may_name_the_wait_that_it_is_for(rig: Rig) -> None:
    rig.signal("hello", to=2)
    node = waiting(first_of(NAME, Timer(after=DAY), Webhook()))
    outcome = await rig.run(node)
    assert outcome.outputs == {"value": [2, ["hello", {}, {}]]}


async def test_all_of_keeps_its_order_whatever_comes_first(rig: Rig) -> None:
    rig.signal(WebhookRequest("hello", {"a": "b"}, {}), to=1)
    rig.signal({"name": "Ann"})
    outcome = await rig.run(waiting(all_of(NAME, Webhook(), RunRef("r"))))
    assert [each["kind"] for each in outcome.waiting] == ["run"]
    rig.signal("hello", to=1)
    rig.signal({"name": "Ann"})
    rig.signal({"status": "failed", "reason": "no"})
    outcome = await rig.run(waiting(all_of(NAME, Webhook(), RunRef("r"))))
    assert outcome.outputs == {
        "value": [{"name": "Ann"}, ["hello", {}, {}], {"run": "r", "status": "failed", "reason": "no"}]
    }


async def test_letting_the_time_pass_is_queued_like_a_signal(rig: Rig) -> None:
    rig.time_out()
    rig.signal({"name": "Ann"})
    node = waiting(NAME, timeout=DAY)
    failed = (await rig.run(node)).failed
    assert failed is not None
    assert failed.type == "WaitTimedOut"
    assert (await rig.run(node)).outputs == {"value": {"name": "Ann"}}


@pytest.mark.parametrize(
    ("wait", "queue", "words"),
    [
        (NAME, lambda rig: rig.signal({"nam": "Ann"}), "did you mean `name`"),
        (NAME, lambda rig: rig.signal("Ann"), "not a String"),
        (NAME, lambda rig: rig.time_out(), "without a time-out"),
        (NAME, lambda rig: rig.signal({}, to=1), "wait number 1"),
        (Webhook(), lambda rig: rig.skip(), "only a form can be skipped"),
        (RunRef("r"), lambda rig: rig.signal({"status": "done"}), "completed, failed, cancelled"),
        (RunRef("r"), lambda rig: rig.signal(), "not with None"),
        (first_of(NAME, Timer(after=DAY)), lambda rig: rig.signal({}, to=1), "takes no signal"),
    ],
)
async def test_a_signal_that_would_be_refused_fails_the_test(rig: Rig, wait: Any, queue: Any, words: str) -> None:
    queue(rig)
    with pytest.raises(AssertionError, match=words):
        await rig.run(waiting(wait))


class Parent(Node):
    """Start a run and wait for it."""

    class Outputs:
        value: Any

    async def run(self, ctx: ExecutionContext) -> None:
        note = await ctx.run("note", lambda: "n")
        child = await ctx.start_run("child.weft", {"text": {"value": note}}, tags=["a", "a"])
        await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(child)))


@pytest.mark.parametrize("effects", [1, 2, 3, 4])
async def test_a_child_run_is_started_once_wherever_a_crash_comes(rig: Rig, effects: int) -> None:
    rig.crash_after(effects)
    rig.signal({"status": "completed"})
    outcome = await rig.run(Parent)
    (started,) = rig.started_runs
    assert (started.program, started.inputs, started.tags) == ("child.weft", {"text": {"value": "n"}}, ["a"])
    assert outcome.outputs == {"value": {"run": started.run, "status": "completed", "reason": None}}
    assert outcome.saved == [("note", "n")]
    assert len(outcome.waits) == 1


async def test_two_crashes_and_a_wait(rig: Rig) -> None:
    rig.crash_after(1)
    rig.crash_after(4)
    rig.signal({"status": "completed"})
    outcome = await rig.run(Parent)
    assert outcome.failed is None
    assert len(rig.started_runs) == len(outcome.waits) == 1
    assert outcome.attempts == 4


async def test_the_name_of_a_started_run_is_not_for_saved_outcomes(rig: Rig) -> None:
    class Clashes(Node):
        """Save under a name that is taken."""

        async def run(self, ctx: ExecutionContext) -> None:
            await ctx.run("start_run", lambda: 1)

    failed = (await rig.run(Clashes)).failed
    assert failed is not None
    assert "cannot be called start_run" in failed.message


async def test_a_node_that_may_not_run_twice_may_wait_all_the_same(rig: Rig) -> None:
    class Once(Node):
        """Wait, and do not run again after a crash."""

        rerun = False

        class Outputs:
            value: Any

        async def run(self, ctx: ExecutionContext) -> None:
            await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(NAME)))

    rig.signal({"name": "Ann"})
    assert (await rig.run(Once)).outputs == {"value": {"name": "Ann"}}
    rig.crash_after(1)
    failed = (await rig.run(Once)).failed
    assert failed is not None
    assert "caught by a crash" in failed.message
