"""What every ExecutionContext does with waits, child runs and a body that runs again: the contract's other half."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from tests.unit.testing.contract import NOTHING, SKIPPED, Host, failure
from weft import (
    ExecutionContext,
    Form,
    Node,
    NodeError,
    NodeOutput,
    Timer,
    WaitTimedOut,
    Webhook,
    all_of,
    first_of,
    forms,
)

AGE = Form("How old are you?", [forms.text_input("age")])


class _Value(Node):
    class Outputs:
        value: Any


class WaitContract:
    """Run by a subclass with a `host` fixture."""

    # --- one wait -----------------------------------------------------------------------------------------

    async def test_a_form_gives_its_answers(self, host: Host) -> None:
        class Asks(_Value):
            """Ask."""

            async def run(self, ctx: ExecutionContext) -> None:
                answers = await ctx.await_signal(AGE)
                await ctx.pulse_downstream(NodeOutput(value=answers))

        seen = await host.run(Asks, signals=[{"age": "30"}])
        assert seen.failed is None
        assert seen.outputs == {"value": {"age": "30"}}
        assert seen.waits == [
            ("form", {"title": "How old are you?", "fields": [{"kind": "text_input", "key": "age"}]}),
        ]

    async def test_an_open_form_leaves_the_firing_waiting(self, host: Host) -> None:
        class Asks(_Value):
            """Ask."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(AGE)))

        seen = await host.run(Asks)
        assert seen.failed is None
        assert seen.outputs == {}
        assert seen.waiting == ["form"]

    async def test_a_timer_gives_the_instant_at_which_it_woke(self, host: Host) -> None:
        class Sleeps(_Value):
            """Sleep."""

            async def run(self, ctx: ExecutionContext) -> None:
                woke = await ctx.await_signal(Timer(after=timedelta(milliseconds=20)))
                await ctx.pulse_downstream(NodeOutput(value=[isinstance(woke, datetime), str(woke.utcoffset())]))

        seen = await host.run(Sleeps)
        assert seen.failed is None
        assert seen.outputs == {"value": [True, "0:00:00"]}
        assert seen.waits == [("timer", {"after": 0.02})]

    async def test_a_timer_whose_instant_is_over_wakes_at_once(self, host: Host) -> None:
        class Late(_Value):
            """Wait for the past."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.await_signal(Timer(until="2001-02-03T04:05:06+05:30"))
                await ctx.pulse_downstream(NodeOutput(value=1))

        seen = await host.run(Late)
        assert seen.outputs == {"value": 1}
        assert seen.waits == [("timer", {"until": "2001-02-02T22:35:06.000Z"})]

    async def test_a_webhook_gives_the_request(self, host: Host) -> None:
        class Hooks(_Value):
            """Wait for a request."""

            async def run(self, ctx: ExecutionContext) -> None:
                request = await ctx.await_signal(Webhook())
                told = [request.body, type(request.headers).__name__, type(request.query).__name__]
                await ctx.pulse_downstream(NodeOutput(value=told))

        seen = await host.run(Hooks, signals=[{"paid": True}])
        assert seen.outputs == {"value": [{"paid": True}, "dict", "dict"]}

    async def test_a_skipped_form_ends_the_firing_without_a_failure(self, host: Host) -> None:
        class Asks(_Value):
            """Ask."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(AGE)))

        seen = await host.run(Asks, signals=[SKIPPED])
        assert seen.skipped
        assert seen.failed is None
        assert seen.closed == ["value"]

    # --- time-outs ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("wait", [AGE, Webhook(), all_of(AGE, Webhook()), first_of(AGE, Webhook())])
    async def test_a_time_out_is_raised_and_may_be_caught(self, host: Host, wait: Any) -> None:
        class Asks(_Value):
            """Ask, but not for ever."""

            async def run(self, ctx: ExecutionContext) -> None:
                try:
                    await ctx.await_signal(wait, timeout=timedelta(milliseconds=20))
                except WaitTimedOut:
                    await ctx.pulse_downstream(NodeOutput(value="late"))

        seen = await host.run(Asks, signals=[NOTHING])
        assert seen.failed is None
        assert seen.outputs == {"value": "late"}

    async def test_a_time_out_that_nobody_catches_fails_the_node_and_names_wait_and_time(self, host: Host) -> None:
        class Asks(_Value):
            """Ask, but not for ever."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.await_signal(AGE, timeout=timedelta(milliseconds=20))

        message, kind = failure(await host.run(Asks, signals=[NOTHING]))
        assert kind == "WaitTimedOut"
        assert "“How old are you?”" in message
        assert "0.02 seconds" in message

    # --- several ------------------------------------------------------------------------------------------

    async def test_the_first_of_two_is_told_with_its_place(self, host: Host) -> None:
        class Races(_Value):
            """Ask, or go on after a while."""

            class Inputs:
                seconds: float

            async def run(self, ctx: ExecutionContext) -> None:
                timer = Timer(after=timedelta(seconds=ctx.inputs.get("seconds", float)))
                which, value = await ctx.await_signal(first_of(AGE, timer))
                await ctx.pulse_downstream(NodeOutput(value=[which, value if which == 0 else None]))

        assert (await host.run(Races, {"seconds": 0.02}, signals=[NOTHING])).outputs == {"value": [1, None]}
        answered = await host.run(Races, {"seconds": 600}, signals=[{"age": "9"}])
        assert answered.outputs == {"value": [0, {"age": "9"}]}

    async def test_fault_b26_all_of_two_forms_waits_for_both_and_runs_nothing_twice(self, host: Host) -> None:
        class Both(_Value):
            """Ask two."""

            ran: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.run("count", lambda: self.ran.append(1))
                ctx.log("info", "asking")
                asked = all_of(AGE, Form("Name?", [forms.text_input("name")]))
                await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(asked)))

        seen = await host.run(Both, signals=[{"age": "9"}, {"name": "Ann"}])
        assert seen.outputs == {"value": [{"age": "9"}, {"name": "Ann"}]}
        assert Both.ran == [1]
        assert seen.logs == [("info", "asking")]
        assert (await host.run(Both, signals=[{"age": "9"}])).waiting == ["form"]

    async def test_asking_until_the_answer_is_right_asks_anew_each_time(self, host: Host) -> None:
        class Insists(_Value):
            """Ask until it is a number from 0."""

            said: ClassVar[list[str]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                while True:
                    age = (await ctx.await_signal(AGE))["age"]
                    await ctx.run("note", lambda said=age: self.said.append(said))
                    if age.isdigit():
                        break
                await ctx.pulse_downstream(NodeOutput(value=age))

        seen = await host.run(Insists, signals=[{"age": "x"}, {"age": "-1"}, {"age": "30"}])
        assert seen.outputs == {"value": "30"}
        assert Insists.said == ["x", "-1", "30"]
        assert [kind for kind, _ in seen.waits] == ["form"] * 3

    # --- refusals -----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", ["emit", "close"])
    async def test_race_39_no_waiting_after_an_emission_or_a_closing(self, host: Host, how: str) -> None:
        class TooLate(_Value):
            """Wait after the fact."""

            async def run(self, ctx: ExecutionContext) -> None:
                if how == "emit":
                    await ctx.pulse_downstream(NodeOutput(value=1))
                else:
                    await ctx.close_port("value")
                await ctx.await_signal(AGE)

        seen = await host.run(TooLate)
        assert "cannot wait any more" in failure(seen)[0]
        assert seen.waits == []

    async def test_no_waiting_after_an_emission_that_only_the_record_knows(self, host: Host) -> None:
        class Forgets(_Value):
            """Emit at first, wait when it runs again."""

            lives: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.lives.append(1)
                if len(self.lives) > 1:
                    await ctx.await_signal(AGE)
                await ctx.pulse_downstream(NodeOutput(value=1))

        seen = await host.run(Forgets, crash_after=1)
        assert "cannot wait any more" in failure(seen)[0]
        assert seen.outputs == {"value": 1}

    async def test_no_waiting_inside_of_a_saved_outcome(self, host: Host) -> None:
        class Nests(_Value):
            """Wait in ctx.run."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.run("ask", lambda: ctx.await_signal(AGE))

        assert "uses the context" in failure(await host.run(Nests))[0]

    # --- the signal that leaves the body ------------------------------------------------------------------

    async def test_fault_b37_except_exception_lets_the_signal_pass(self, host: Host) -> None:
        class Careful(_Value):
            """Catch every Exception."""

            async def run(self, ctx: ExecutionContext) -> None:
                try:
                    answers = await ctx.await_signal(AGE)
                except Exception:
                    answers = {"age": "caught"}
                await ctx.pulse_downstream(NodeOutput(value=answers["age"]))

        assert (await host.run(Careful, signals=[{"age": "1"}])).outputs == {"value": "1"}

    async def test_a_call_after_a_swallowed_signal_leaves_all_the_same(self, host: Host) -> None:
        class Greedy(_Value):
            """Catch everything and go on."""

            async def run(self, ctx: ExecutionContext) -> None:
                answers = {"age": "caught"}
                try:
                    answers = await ctx.await_signal(AGE)
                except:  # noqa: E722
                    ctx.log("info", "swallowed")
                await ctx.pulse_downstream(NodeOutput(value=answers["age"]))

        seen = await host.run(Greedy, signals=[{"age": "1"}])
        assert seen.outputs == {"value": "1"}
        assert seen.logs == []

    @pytest.mark.parametrize("then", ["return", "raise"])
    async def test_fault_b37_a_body_that_swallows_the_signal_fails_and_says_so(self, host: Host, then: str) -> None:
        class Swallows(_Value):
            """Catch everything."""

            async def run(self, ctx: ExecutionContext) -> None:
                try:
                    await ctx.await_signal(AGE)
                except BaseException as error:
                    if then == "raise":
                        raise ValueError("no answer") from error

        seen = await host.run(Swallows)
        message, _ = failure(seen)
        assert "caught the signal by which await_signal leaves it" in message
        assert ("raised ValueError: no answer" if then == "raise" else "went on to its end") in message
        assert seen.waits == []

    async def test_a_task_group_around_the_wait_is_no_harm(self, host: Host) -> None:
        class Groups(_Value):
            """Wait in a task group."""

            async def run(self, ctx: ExecutionContext) -> None:
                async with asyncio.TaskGroup() as group:
                    asking = group.create_task(ctx.await_signal(AGE))
                await ctx.pulse_downstream(NodeOutput(value=asking.result()["age"]))

        assert (await host.run(Groups, signals=[{"age": "1"}])).outputs == {"value": "1"}

    async def test_what_finally_awaits_is_done_before_the_body_leaves(self, host: Host) -> None:
        class Cleans(_Value):
            """Clean up."""

            cleaned: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                try:
                    answers = await ctx.await_signal(AGE)
                finally:
                    await asyncio.sleep(0)
                    self.cleaned.append(1)
                await ctx.pulse_downstream(NodeOutput(value=answers["age"]))

        assert (await host.run(Cleans, signals=[{"age": "1"}])).outputs == {"value": "1"}
        assert Cleans.cleaned == [1, 1]

    # --- positions ----------------------------------------------------------------------------------------

    async def test_a_crash_after_the_registration_makes_no_second_form(self, host: Host) -> None:
        class Asks(_Value):
            """Ask."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(AGE)))

        seen = await host.run(Asks, signals=[{"age": "1"}], crash_after=1)
        assert seen.outputs == {"value": {"age": "1"}}
        assert len(seen.waits) == 1

    async def test_an_emission_after_a_wait_is_repeated_after_a_crash(self, host: Host) -> None:
        class Asks(_Value):
            """Ask."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=await ctx.await_signal(AGE)))

        seen = await host.run(Asks, signals=[{"age": "1"}], crash_after=2)
        assert seen.failed is None
        assert seen.outputs == {"value": {"age": "1"}}

    @pytest.mark.parametrize("first", ["run", "wait"])
    async def test_race_40_a_wait_and_an_outcome_that_change_places_are_noticed(self, host: Host, first: str) -> None:
        class Swaps(_Value):
            """Do it the other way round when it runs again."""

            lives: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.lives.append(1)
                if (len(self.lives) == 1) is (first == "run"):
                    await ctx.run("fetch", lambda: None)
                await ctx.await_signal(AGE)

        message, kind = failure(await host.run(Swaps, crash_after=1, signals=[{"age": "1"}]))
        assert kind == "DivergedAfterCrash"
        assert "run('fetch')" in message
        assert "await_signal" in message

    async def test_another_kind_of_wait_in_the_same_place_is_noticed(self, host: Host) -> None:
        class Changes(_Value):
            """Wait for something else when it runs again."""

            lives: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.lives.append(1)
                await ctx.await_signal(AGE if len(self.lives) == 1 else Webhook())

        message, kind = failure(await host.run(Changes, signals=[{"age": "1"}]))
        assert kind == "DivergedAfterCrash"
        assert "a form" in message
        assert "the webhook" in message

    # --- misuse -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: "monday", "takes a Form, Timer, Webhook or RunRef"),
            (lambda: Timer(), "either `after` or `until`"),
            (lambda: Timer(until=datetime(2030, 1, 1)), "no offset"),
            (lambda: Timer(after=timedelta(seconds=-1)), "`after` of a timer is -1 seconds"),
            (lambda: Timer(after=5), "is a timedelta, not 5"),  # type: ignore[arg-type]
            (lambda: first_of(), "at least one wait"),
            (lambda: all_of(AGE, first_of(AGE)), "all_of takes forms"),  # type: ignore[arg-type]
        ],
    )
    async def test_what_is_no_wait_fails_the_node(self, host: Host, make: Any, words: str) -> None:
        class Misuses(_Value):
            """Wait for what cannot be waited for."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.await_signal(make())

        seen = await host.run(Misuses)
        assert words in failure(seen)[0]
        assert seen.waits == []

    async def test_a_failure_after_a_wait_is_a_failure(self, host: Host) -> None:
        class Fails(_Value):
            """Wait and fail."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.await_signal(AGE)
                raise NodeError("no more")

        assert failure(await host.run(Fails, signals=[{"age": "1"}])) == ("no more", "NodeError")
