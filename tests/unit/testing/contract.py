"""What every ExecutionContext does, whoever stands behind it: checks to run against the rig and the engine.

A test module subclasses `ContextContract` and gives it a fixture `host`. A host runs one firing of a node
class to its end and tells what became of it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import pytest

from weft import ExecutionContext, InputError, Node, NodeError, NodeOutput, RunFailed, StopSelf


@dataclass
class Seen:
    """What a firing left, as its record tells it. `failed` is message and type; `closed` are the ports that
    never carried a value; `stops` are tag and whether the asker is included. `waits` are kind and spec of each that
    was registered, in order, `waiting` the kinds of those that are still open."""

    outputs: dict[str, Any] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    failed: tuple[str, str] | None = None
    traceback: str | None = None
    cancelled: bool = False
    logs: list[tuple[str, str]] = field(default_factory=list)
    costs: list[tuple[str, float | None]] = field(default_factory=list)
    tags: list[list[str]] = field(default_factory=list)
    stops: list[tuple[str, bool]] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    waits: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    skipped: bool = False


SKIPPED, NOTHING = object(), object()
"""Signals: a person skips the form; nothing comes, and the time goes on."""


class Host(Protocol):
    async def run(
        self,
        node: type[Node],
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Mapping[str, Any] | Sequence[str] = (),
        wired: Sequence[str] | None = None,
        crash_after: int | None = None,
        stop_when: asyncio.Event | None = None,
        signals: Sequence[Any] = (),
    ) -> Seen:
        """One firing. `crash_after`: the process dies after that many stored effects (emissions, closures,
        tags, stops, saved outcomes, child runs, waits; with fewer, before the end is stored) and the body runs again.
        `stop_when`: the run is stopped once the body sets this. `signals` end the firing's waits in their order:
        answers to a form, the body of a request, the end of a run, SKIPPED or NOTHING; without one the time goes on
        to the next timer or time-out, and where there is none, the firing is left waiting."""


class _OneOutput(Node):
    class Outputs:
        value: Any


def failure(seen: Seen) -> tuple[str, str]:
    assert seen.failed is not None, f"it did not fail: {seen}"
    return seen.failed


async def for_ever() -> None:
    await asyncio.Event().wait()


class ContextContract:
    """Run by a subclass with a `host` fixture."""

    # --- inputs and outputs -------------------------------------------------------------------------------

    async def test_a_value_goes_in_and_out(self, host: Host) -> None:
        class Echo(_OneOutput):
            """Give back."""

            class Inputs:
                value: dict[str, Any]

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=ctx.inputs.get("value", dict)))

        value = {"text": "é\u2028", "list": [1, 2.5, True, None], "nested": {"a": {}}}
        seen = await host.run(Echo, {"value": value})
        assert seen.failed is None
        assert seen.outputs == {"value": value}
        assert seen.closed == []

    @pytest.mark.parametrize("value", [[], None, 0, "", False, {}], ids=repr)
    async def test_an_empty_value_is_a_value_and_no_closure(self, host: Host, value: Any) -> None:
        class Emits(_OneOutput):
            """Emit."""

            class Outputs:
                value: Any
                other: Any

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(value=value))

        seen = await host.run(Emits)
        assert seen.outputs == {"value": value}
        assert type(seen.outputs["value"]) is type(value)
        assert seen.closed == ["other"]

    async def test_ports_may_be_emitted_one_by_one_and_closed_early(self, host: Host) -> None:
        class Several(Node):
            """Emit and close."""

            class Outputs:
                first: int
                second: int
                third: int

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(second=2))
                await ctx.close_port("third")
                await ctx.pulse_downstream(NodeOutput())
                await ctx.pulse_downstream(NodeOutput(first=1))

        seen = await host.run(Several)
        assert seen.outputs == {"first": 1, "second": 2}
        assert seen.closed == ["third"]

    @pytest.mark.parametrize(
        ("output", "words"),
        [
            ({"valeu": 1}, ["no output `valeu`", "`value`"]),
            ({"count": "1"}, ["count", "a String, not a Number"]),
            ({"count": True}, ["count", "a Boolean, not a Number"]),
            ({"count": float("nan")}, ["count", "NaN"]),
            ({"count": 2**63}, ["count", "64 bits"]),
            ({"value": "a\0b"}, ["value", "U+0000"]),
            ({"value": "\ud800"}, ["value", "surrogate"]),
            ({"value": {"when": object()}}, ["value", "when", "Python object"]),
            ({"value": {1: 2}}, ["value", "as a key"]),
        ],
        ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
    )
    async def test_an_emission_that_may_not_be_fails_the_node_and_emits_nothing(
        self, host: Host, output: dict[str, Any], words: list[str]
    ) -> None:
        class Emits(Node):
            """Emit."""

            class Outputs:
                good: int
                value: Any
                count: int

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(good=1).update(output))

        seen = await host.run(Emits)
        message, kind = failure(seen)
        assert kind == "EmissionError"
        assert "emits" in message
        for word in words:
            assert word in message
        assert seen.outputs == {}

    @pytest.mark.parametrize("first", ["emit", "close"])
    @pytest.mark.parametrize("then", ["emit", "close"])
    async def test_a_port_is_touched_once(self, host: Host, first: str, then: str) -> None:
        class Twice(_OneOutput):
            """Touch the port twice."""

            async def run(self, ctx: ExecutionContext) -> None:
                for what in (first, then):
                    if what == "emit":
                        await ctx.pulse_downstream(NodeOutput(value=1))
                    else:
                        await ctx.close_port("value")

        seen = await host.run(Twice)
        message, kind = failure(seen)
        assert kind == "EmissionError"
        assert "`value` of `twice` was emitted or closed before" in message
        assert seen.outputs == ({"value": 1} if first == "emit" else {})

    async def test_what_was_emitted_before_a_failure_stands(self, host: Host) -> None:
        class Half(Node):
            """Fail half way."""

            class Outputs:
                first: int
                second: int

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.pulse_downstream(NodeOutput(first=1))
                raise NodeError("no more")

        seen = await host.run(Half)
        assert failure(seen) == ("no more", "NodeError")
        assert seen.outputs == {"first": 1}
        assert seen.closed == ["second"]

    async def test_a_closing_of_an_unknown_port_names_the_nearest(self, host: Host) -> None:
        class Closes(_OneOutput):
            """Close."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.close_port("valu")

        assert "did you mean `value`?" in failure(await host.run(Closes))[0]

    async def test_a_returned_value_is_a_failure_and_not_lost_in_silence(self, host: Host) -> None:
        class Returns(_OneOutput):
            """Return."""

            async def run(self, ctx: ExecutionContext) -> Any:
                return {"value": 1}

        assert "returned dict" in failure(await host.run(Returns))[0]

    async def test_a_value_of_another_type_fails_on_arrival(self, host: Host) -> None:
        class Takes(Node):
            """Take."""

            ran: ClassVar[list[int]] = []

            class Inputs:
                count: int | None = None

            async def run(self, ctx: ExecutionContext) -> None:
                self.ran.append(1)

        message, kind = failure(await host.run(Takes, {"count": "7"}))
        assert kind == "InputError"
        assert "`count` of `takes`" in message
        assert "a String, not a Number | Null" in message
        assert Takes.ran == []

    async def test_a_body_learns_who_it_is_and_what_hangs_on_it(self, host: Host) -> None:
        class WhoAmI(Node):
            """Tell."""

            class Outputs:
                told: dict[str, Any]
                loose: list[str]

            async def run(self, ctx: ExecutionContext) -> None:
                told = {
                    "node": [ctx.node_id, ctx.node_type, ctx.node_label],
                    "frames": list(ctx.frames),
                    "ids": [type(ctx.execution_id).__name__, type(ctx.project_id).__name__],
                    "wired": [ctx.is_output_wired("told"), ctx.is_output_wired("loose")],
                    "type": ctx.output_type("loose"),
                    "outputs": list(ctx.declared_outputs()),
                }
                await ctx.pulse_downstream(NodeOutput(told=told))

        seen = await host.run(WhoAmI, wired=["told"])
        assert seen.outputs["told"] == {
            "node": ["whoAmI", "WhoAmI", "whoAmI"],
            "frames": [],
            "ids": ["str", "str"],
            "wired": [True, False],
            "type": "List[String]",
            "outputs": ["told", "loose"],
        }

    # --- lines --------------------------------------------------------------------------------------------

    async def test_lines_and_costs_are_kept_and_an_unknown_cost_is_not_nothing(self, host: Host) -> None:
        class Logs(Node):
            """Log."""

            async def run(self, ctx: ExecutionContext) -> None:
                ctx.log("info", "one")
                await ctx.log("warning", "two \0")
                ctx.report_cost("llm", 0.25)
                await ctx.report_cost("llm", None)
                ctx.report_cost("llm", 0)

        seen = await host.run(Logs)
        assert seen.failed is None
        assert seen.logs == [("info", "one"), ("warning", "two \ufffd")]
        assert seen.costs == [("llm", 0.25), ("llm", None), ("llm", 0)]

    # --- steering -----------------------------------------------------------------------------------------

    async def test_tags_and_stops(self, host: Host) -> None:
        class Steers(Node):
            """Steer."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.tag_execution(["a", "b", "a"])
                await ctx.stop_tagged("c")
                await ctx.stop_tagged(["d", "e"], StopSelf.INCLUDE)

        seen = await host.run(Steers)
        assert seen.failed is None
        assert seen.tags == [["a", "b"]]
        assert seen.stops == [("c", False), ("d", True), ("e", True)]

    @pytest.mark.parametrize("tags", [[], ["ok", "not ok"], ["é"], ["a\n"], ["x" * 65], [""], ["a"] * 65, "abc"])
    async def test_an_illegal_tag_is_an_input_error_and_nothing_is_written(self, host: Host, tags: Any) -> None:
        class Tags(Node):
            """Tag."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.tag_execution(tags)

        seen = await host.run(Tags)
        assert failure(seen)[1] == "InputError"
        assert seen.tags == []

    async def test_a_stop_that_reaches_its_own_run_does_not_return(self, host: Host) -> None:
        class StopsItself(_OneOutput):
            """Stop everybody."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.tag_execution(["mine"])
                await ctx.stop_tagged("mine", StopSelf.INCLUDE)
                await ctx.pulse_downstream(NodeOutput(value="went on"))

        seen = await host.run(StopsItself)
        assert seen.cancelled
        assert seen.outputs == {}

    # --- saved outcomes and crashes -----------------------------------------------------------------------

    async def test_race_41_and_42_saved_outcomes_are_not_computed_again(self, host: Host) -> None:
        class Saves(_OneOutput):
            """Save."""

            drawn: ClassVar[list[str]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                async def second() -> None:
                    self.drawn.append("second")

                first = await ctx.run("draw", lambda: self.drawn.append("first") or len(self.drawn))
                nothing = await ctx.run("draw", second)
                third = await ctx.run("draw", lambda: self.drawn.append("third") or {"n": [1]})
                third["n"].append(2)
                await ctx.pulse_downstream(NodeOutput(value=[first, nothing, third]))

        seen = await host.run(Saves, crash_after=3)
        assert seen.outputs == {"value": [1, None, {"n": [1, 2]}]}
        assert Saves.drawn == ["first", "second", "third"]

    async def test_a_failure_is_saved_and_takes_the_body_the_same_way_again(self, host: Host) -> None:
        class Fails(_OneOutput):
            """Fail and go on."""

            calls: ClassVar[list[int]] = []
            caught: ClassVar[list[tuple[str, str]]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                def fetch() -> None:
                    self.calls.append(1)
                    raise ConnectionError("nobody there")

                try:
                    await ctx.run("fetch", fetch)
                except RunFailed as error:
                    self.caught.append((error.type_name, error.message))
                await ctx.pulse_downstream(NodeOutput(value="went on"))

        seen = await host.run(Fails, crash_after=2)
        assert seen.outputs == {"value": "went on"}
        assert Fails.calls == [1]
        assert Fails.caught == [("ConnectionError", "nobody there")] * 2

    async def test_a_failure_that_is_not_caught_is_told_with_its_own_type(self, host: Host) -> None:
        class Fails(Node):
            """Fail."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.run("fetch", lambda: {}["chat"])  # type: ignore[index, unused-ignore]

        seen = await host.run(Fails)
        assert failure(seen) == ("KeyError: 'chat'", "KeyError")
        assert seen.traceback is not None
        assert "lambda" in seen.traceback

    async def test_a_result_that_cannot_be_saved_is_a_failure(self, host: Host) -> None:
        class Saves(Node):
            """Save."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.run("sets", lambda: {"all": {1, 2}})

        message, _ = failure(await host.run(Saves))
        assert "run('sets') in `saves` cannot be stored" in message
        assert "Python set" in message

    async def test_emissions_and_lines_are_not_repeated_after_a_crash(self, host: Host) -> None:
        class Emits(Node):
            """Emit."""

            bodies: ClassVar[list[int]] = []

            class Outputs:
                first: int
                second: int
                third: int

            async def run(self, ctx: ExecutionContext) -> None:
                self.bodies.append(1)
                ctx.log("info", "begin")
                await ctx.pulse_downstream(NodeOutput(first=len(self.bodies)))
                ctx.report_cost("llm", 1)
                await ctx.close_port("second")
                ctx.log("info", "end")
                await ctx.pulse_downstream(NodeOutput(third=len(self.bodies)))

        seen = await host.run(Emits, crash_after=2)
        assert seen.failed is None
        assert seen.outputs == {"first": 1, "third": 2}, "the recorded value stands"
        assert seen.closed == ["second"]
        assert seen.logs == [("info", "begin"), ("info", "end")]
        assert seen.costs == [("llm", 1)]

    async def test_other_ports_than_before_the_crash_are_a_divergence(self, host: Host) -> None:
        class Wavers(Node):
            """Waver."""

            bodies: ClassVar[list[int]] = []

            class Outputs:
                a: int
                b: int

            async def run(self, ctx: ExecutionContext) -> None:
                self.bodies.append(1)
                try:
                    await ctx.pulse_downstream(NodeOutput().set("a" if len(self.bodies) == 1 else "b", 1))
                except NodeError:
                    # Caught, it comes again at the next call.
                    await ctx.close_port("a")

        seen = await host.run(Wavers, crash_after=1)
        message, kind = failure(seen)
        assert kind == "DivergedAfterCrash"
        assert "emitted `b`" in message and "emitted `a`" in message
        assert seen.outputs == {"a": 1}

    async def test_an_end_before_the_recorded_calls_is_a_divergence(self, host: Host) -> None:
        class Stops(_OneOutput):
            """Stop early."""

            bodies: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.bodies.append(1)
                if len(self.bodies) == 1:
                    await ctx.pulse_downstream(NodeOutput(value=1))

        message, kind = failure(await host.run(Stops, crash_after=1))
        assert kind == "DivergedAfterCrash"
        assert "emitted `value`" in message

    async def test_another_kind_of_call_than_before_the_crash_is_a_divergence(self, host: Host) -> None:
        class Swaps(Node):
            """Swap."""

            bodies: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.bodies.append(1)
                if len(self.bodies) == 1:
                    await ctx.run("pick", lambda: 1)
                else:
                    await ctx.stop_tagged("a")

        seen = await host.run(Swaps, crash_after=1)
        message, kind = failure(seen)
        assert kind == "DivergedAfterCrash"
        assert "stop_tagged" in message and "run('pick')" in message
        assert seen.stops == []

    async def test_tags_and_stops_stand_once_after_a_crash(self, host: Host) -> None:
        class Steers(_OneOutput):
            """Steer."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.tag_execution(["a"])
                await ctx.stop_tagged("a")
                await ctx.pulse_downstream(NodeOutput(value=1))

        seen = await host.run(Steers, crash_after=2)
        assert seen.outputs == {"value": 1}
        assert seen.stops == [("a", False)]

    async def test_a_node_that_may_not_run_again_fails_after_a_crash(self, host: Host) -> None:
        class Once(_OneOutput):
            """Run once."""

            rerun = False
            bodies: ClassVar[list[int]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                self.bodies.append(1)
                await ctx.run("pay", lambda: 1)
                await ctx.pulse_downstream(NodeOutput(value=1))

        seen = await host.run(Once, crash_after=1)
        assert "may have partly happened" in failure(seen)[0]
        assert Once.bodies == [1]

    # --- stopping -----------------------------------------------------------------------------------------

    async def test_a_stop_is_delivered_at_the_await_and_finally_runs_once(self, host: Host) -> None:
        begun = asyncio.Event()

        class Waits(_OneOutput):
            """Wait."""

            finals: ClassVar[list[bool]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                begun.set()
                try:
                    await for_ever()
                finally:
                    ctx.log("info", "too late")
                    self.finals.append(ctx.is_cancelled())

        seen = await host.run(Waits, stop_when=begun)
        assert seen.cancelled
        assert seen.failed is None
        assert Waits.finals == [True]
        assert seen.logs == []

    async def test_a_body_that_swallows_the_stop_meets_it_at_its_next_call(self, host: Host) -> None:
        begun = asyncio.Event()

        class Swallows(_OneOutput):
            """Swallow."""

            went: ClassVar[list[str]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                begun.set()
                try:
                    await for_ever()
                except asyncio.CancelledError:
                    task = asyncio.current_task()
                    assert task is not None
                    task.uncancel()
                self.went.append("on")
                try:
                    await ctx.pulse_downstream(NodeOutput(value=1))
                except Exception:
                    self.went.append("caught")
                self.went.append("past it")

        seen = await host.run(Swallows, stop_when=begun)
        assert seen.cancelled
        assert seen.outputs == {}
        assert Swallows.went == ["on"]

    async def test_what_a_body_does_after_a_stop_is_dropped(self, host: Host) -> None:
        begun = asyncio.Event()

        class Shields(Node):
            """Return after the stop."""

            async def run(self, ctx: ExecutionContext) -> None:
                begun.set()
                try:
                    await for_ever()
                except asyncio.CancelledError:
                    return

        seen = await host.run(Shields, stop_when=begun)
        assert seen.cancelled
        assert seen.failed is None

    async def test_an_error_while_cleaning_up_is_no_failure(self, host: Host) -> None:
        begun = asyncio.Event()

        class Wraps(Node):
            """Raise after the stop."""

            async def run(self, ctx: ExecutionContext) -> None:
                begun.set()
                try:
                    await for_ever()
                except asyncio.CancelledError as stop:
                    raise RuntimeError("cleanup") from stop

        seen = await host.run(Wraps, stop_when=begun)
        assert seen.cancelled
        assert seen.failed is None

    async def test_a_time_out_of_the_body_itself_is_no_stop(self, host: Host) -> None:
        class TimesOut(_OneOutput):
            """Time out."""

            async def run(self, ctx: ExecutionContext) -> None:
                try:
                    async with asyncio.timeout(0.01):
                        await for_ever()
                except TimeoutError:
                    await ctx.pulse_downstream(NodeOutput(value=ctx.is_cancelled()))

        seen = await host.run(TimesOut)
        assert not seen.cancelled
        assert seen.outputs == {"value": False}

    async def test_the_flag_tells_of_a_stop(self, host: Host) -> None:
        begun = asyncio.Event()

        class Watches(Node):
            """Watch the flag."""

            seen: ClassVar[list[bool]] = []

            async def run(self, ctx: ExecutionContext) -> None:
                flag = ctx.cancellation()
                self.seen.append(flag.is_set())
                watcher = asyncio.create_task(flag.wait())
                begun.set()
                try:
                    await for_ever()
                finally:
                    await watcher
                    self.seen.append(flag.is_set())

        assert (await host.run(Watches, stop_when=begun)).cancelled
        assert Watches.seen == [False, True]

    async def test_a_thread_gives_its_result_and_may_log(self, host: Host) -> None:
        class Threads(_OneOutput):
            """Work in a thread."""

            async def run(self, ctx: ExecutionContext) -> None:
                def work(flag: Any) -> list[Any]:
                    ctx.log("info", "from the thread")
                    return [threading.current_thread() is threading.main_thread(), flag.is_set()]

                await ctx.pulse_downstream(NodeOutput(value=await ctx.thread(work)))
                with pytest.raises(KeyError):
                    await ctx.thread(lambda flag: {}["x"])  # type: ignore[index, unused-ignore]

        seen = await host.run(Threads)
        assert seen.failed is None
        assert seen.outputs == {"value": [False, False]}
        assert seen.logs == [("info", "from the thread")]

    async def test_a_thread_that_sees_the_flag_ends_with_the_stop(self, host: Host) -> None:
        begun = asyncio.Event()
        ended = threading.Event()

        class Polls(Node):
            """Poll in a thread."""

            async def run(self, ctx: ExecutionContext) -> None:
                loop = asyncio.get_running_loop()

                def work(flag: Any) -> None:
                    loop.call_soon_threadsafe(begun.set)
                    while not flag.is_set():
                        ended.wait(0.001)
                    ended.set()

                await ctx.thread(work)

        seen = await host.run(Polls, stop_when=begun)
        assert seen.cancelled
        assert ended.wait(5)
        assert seen.left_behind == []

    async def test_a_thread_that_goes_on_is_left_behind_and_its_result_dropped(self, host: Host) -> None:
        begun = asyncio.Event()
        let_go = threading.Event()

        class Ignores(_OneOutput):
            """Ignore the flag in a thread."""

            async def run(self, ctx: ExecutionContext) -> None:
                loop = asyncio.get_running_loop()

                def stubborn(flag: Any) -> str:
                    loop.call_soon_threadsafe(begun.set)
                    let_go.wait(60)
                    return "late"

                await ctx.pulse_downstream(NodeOutput(value=await ctx.thread(stubborn)))

        try:
            seen = await host.run(Ignores, stop_when=begun)
        finally:
            let_go.set()
        assert seen.cancelled
        assert seen.outputs == {}
        assert len(seen.left_behind) == 1
        assert "stubborn" in seen.left_behind[0]

    async def test_a_process_group_goes_with_the_stop(self, host: Host) -> None:
        begun = asyncio.Event()
        group: list[int] = []

        class Spawns(Node):
            """Start a process that starts another."""

            async def run(self, ctx: ExecutionContext) -> None:
                process = await ctx.subprocess(
                    "sh", "-c", "sleep 999 & echo started; wait", stdout=asyncio.subprocess.PIPE
                )
                assert process.stdout is not None
                await process.stdout.readline()
                group.append(os.getpgid(process.pid))
                begun.set()
                await process.wait()

        seen = await host.run(Spawns, stop_when=begun)
        assert seen.cancelled
        await gone(group[0])

    async def test_a_process_group_goes_with_the_end_of_the_firing(self, host: Host) -> None:
        group: list[int] = []

        class Leaves(Node):
            """Leave a process in the background."""

            async def run(self, ctx: ExecutionContext) -> None:
                process = await ctx.subprocess(
                    "sh", "-c", "sleep 999 >/dev/null & echo x", stdout=asyncio.subprocess.PIPE
                )
                assert process.stdout is not None
                await process.stdout.readline()
                group.append(process.pid)
                assert await process.wait() == 0

        assert (await host.run(Leaves)).failed is None
        await gone(group[0])

    async def test_the_context_is_over_with_the_firing(self, host: Host) -> None:
        kept: list[ExecutionContext] = []

        class Keeps(_OneOutput):
            """Keep the context."""

            async def run(self, ctx: ExecutionContext) -> None:
                kept.append(ctx)

        seen = await host.run(Keeps)
        assert seen.failed is None
        with pytest.raises(NodeError, match="has ended"):
            await kept[0].pulse_downstream(NodeOutput(value=1))

    async def test_the_context_cannot_be_used_while_an_outcome_is_computed(self, host: Host) -> None:
        class Nests(_OneOutput):
            """Nest."""

            async def run(self, ctx: ExecutionContext) -> None:
                await ctx.run("outer", lambda: ctx.run("inner", lambda: 1))

        assert "gives to ctx.run uses the context" in failure(await host.run(Nests))[0]

    async def test_an_absent_input_is_an_input_error(self, host: Host) -> None:
        class Reads(Node):
            """Read."""

            async def run(self, ctx: ExecutionContext) -> None:
                with pytest.raises(InputError):
                    ctx.inputs.get("nothing")

        assert (await host.run(Reads)).failed is None


async def gone(group: int) -> None:
    """Return once no process of the group is left. The kill was sent; init or the loop reaps it soon."""
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        if all(_is_zombie(pid) for pid in _members(group)):
            return
        await asyncio.sleep(0.001)


def _members(group: int) -> list[int]:
    members = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - the names alone
        if name.isdigit():
            try:
                if os.getpgid(int(name)) == group:
                    members.append(int(name))
            except ProcessLookupError:
                continue
    return members


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - a file of the kernel's
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
