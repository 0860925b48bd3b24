"""What the rig does beside the contract: inputs as a program would give them, HTTP, crashes, stops."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, TypeVar

import pytest

from weft import (
    CreatedInputs,
    EntryField,
    EntryKind,
    ExecutionContext,
    Node,
    NodeError,
    NodeOutput,
    Port,
    PortsFromConfig,
    PortTemplate,
    StopSelf,
    node,
)
from weft.testing import CLOSED, Rig

T = TypeVar("T")
ROOT = Path(__file__).parents[3]


class ClaimSender(Node):
    """Tag this run with its sender and stop the sender's earlier runs."""

    label = "Claim sender"

    class Inputs:
        sender: str

    class Outputs:
        sender: str

    async def run(self, ctx: ExecutionContext) -> None:
        sender = ctx.inputs.get("sender", str)
        await ctx.tag_execution([sender])
        await ctx.stop_tagged(sender, StopSelf.KEEP)
        await ctx.pulse_downstream(NodeOutput().set("sender", sender))


class Gather(Node):
    """Give back what came in."""

    created_inputs = CreatedInputs(T, required=False)

    class Inputs:
        limit: int = Port(3, ge=1)
        method: Literal["GET", "POST"] = "GET"
        note: str = Port(required=False)

    class Outputs:
        got: list[Any]
        created: dict[str, Any]

    async def run(self, ctx: ExecutionContext) -> None:
        got = [list(pair) for pair in ctx.inputs.in_order()]
        await ctx.pulse_downstream(NodeOutput(got=got, created=ctx.inputs.created()))


class Pick(Node):
    """Choose by cases."""

    created_outputs = False
    ports_from_config = PortsFromConfig(
        "cases",
        [
            EntryKind(
                "is", "port", [EntryField("value", "value", required=True)], adds_outputs=[PortTemplate("{key}", bool)]
            )
        ],
        match_input="value",
    )

    class Inputs:
        value: T
        cases: list[dict[str, Any]] = Port(compiler_read=True)

    async def run(self, ctx: ExecutionContext) -> None:
        for case in ctx.inputs.get("cases"):
            if case["value"] == ctx.inputs.get("value"):
                await ctx.pulse_downstream(NodeOutput().set(case["port"], True))
                return


class Fetch(Node):
    """Get a page."""

    class Inputs:
        url: str

    class Outputs:
        status: int
        body: Any

    async def run(self, ctx: ExecutionContext) -> None:
        answer = await ctx.http.post(ctx.inputs.get("url"), json={"q": "é"})
        await ctx.pulse_downstream(NodeOutput(status=answer.status_code, body=answer.text))


async def test_the_example_of_the_guide(rig: Rig) -> None:
    outcome = await rig.run(ClaimSender, {"sender": "user_7"})
    assert outcome.outputs == {"sender": "user_7"}
    assert rig.execution_tags == [["user_7"]]
    assert rig.stops == [("user_7", StopSelf.KEEP)]


@pytest.mark.parametrize("crash", range(1, 6))
async def test_a_body_survives_a_crash_at_any_point(rig: Rig, crash: int) -> None:
    rig.crash_after(crash)
    outcome = await rig.run(ClaimSender, {"sender": "user_7"})
    assert outcome.attempts == 2
    assert outcome.failed is None
    assert outcome.outputs == {"sender": "user_7"}
    assert rig.execution_tags == [["user_7"]]
    assert rig.stops == [("user_7", StopSelf.KEEP)]


async def test_two_crashes(rig: Rig) -> None:
    rig.crash_after(1)
    rig.crash_after(2)
    outcome = await rig.run(ClaimSender, {"sender": "user_7"})
    assert outcome.attempts == 3
    assert outcome.outputs == {"sender": "user_7"}


async def test_a_value_that_differs_after_a_crash_is_noted(rig: Rig) -> None:
    class Counts(Node):
        """Count."""

        bodies: ClassVar[list[int]] = []

        class Outputs:
            n: int

        async def run(self, ctx: ExecutionContext) -> None:
            self.bodies.append(1)
            await ctx.pulse_downstream(NodeOutput(n=len(self.bodies)))

    rig.crash_after(1)
    outcome = await rig.run(Counts)
    assert outcome.outputs == {"n": 1}
    assert outcome.remarks == ["`counts.n` came out differently than before; the first value stands"]


async def test_a_crash_runs_no_finally_before_the_next_attempt(rig: Rig) -> None:
    order: list[str] = []

    class Cleans(Node):
        """Clean up."""

        async def run(self, ctx: ExecutionContext) -> None:
            order.append("begin")
            try:
                await ctx.run("x", lambda: 1)
                order.append("end")
            finally:
                order.append("finally")

    rig.crash_after(1)
    assert (await rig.run(Cleans)).failed is None
    assert order == ["begin", "begin", "end", "finally", "finally"]


async def test_saved_outcomes_are_in_the_outcome(rig: Rig) -> None:
    class Saves(Node):
        """Save."""

        async def run(self, ctx: ExecutionContext) -> None:
            await asyncio.gather(ctx.run("a", lambda: None), ctx.run("b", lambda: 2))

    assert (await rig.run(Saves)).saved == [("a", None), ("b", 2)]


# --- inputs -----------------------------------------------------------------------------------------------


async def test_defaults_fill_what_is_not_given_and_not_what_closed(rig: Rig) -> None:
    assert (await rig.run(Gather)).outputs["got"] == [["limit", 3], ["method", "GET"]]
    outcome = await rig.run(Gather, {"limit": CLOSED, "note": "n"})
    assert outcome.outputs["got"] == [["method", "GET"], ["note", "n"]]


async def test_created_inputs_come_in_the_order_given(rig: Rig) -> None:
    outcome = await rig.run(Gather, {"zebra": 1, "ant": CLOSED, "bee": None})
    assert outcome.outputs["created"] == {"zebra": 1, "bee": None}
    assert list(outcome.outputs["created"]) == ["zebra", "bee"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"limit": 0}, "0 is below 1"),
        ({"limit": "3"}, "a String, not a Number"),
        ({"limit": True}, "a Boolean, not a Number"),
        ({"limit": None}, "null, not a Number"),
        ({"method": "PUT"}, '`"PUT"` is none of'),
    ],
)
async def test_inputs_are_checked_on_arrival(rig: Rig, inputs: dict[str, Any], words: str) -> None:
    outcome = await rig.run(Gather, inputs)
    assert outcome.failed is not None
    assert outcome.failed.type == "InputError"
    assert words in outcome.failed.message
    assert outcome.closed == ["got", "created"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "required input sender"),
        ({"sender": CLOSED}, "would be skipped"),
        ({"sender": "a", "sendre": "b"}, "no input sendre; did you mean sender"),
        ({"sender": {1, 2}}, "none that a wire can carry"),
    ],
)
async def test_inputs_that_no_program_brings_about_are_refused(rig: Rig, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        await rig.run(ClaimSender, inputs)


async def test_one_of_a_group_must_have_something(rig: Rig) -> None:
    class Either(Node):
        """Either."""

        one_of_required = (("a", "b"),)

        class Inputs:
            a: str = Port(required=False)
            b: str = Port(required=False)

        async def run(self, ctx: ExecutionContext) -> None: ...

    with pytest.raises(ValueError, match="one of a, b"):
        await rig.run(Either, {"a": CLOSED})
    assert (await rig.run(Either, {"b": "x"})).failed is None


async def test_what_a_body_changes_changes_nothing_for_the_test(rig: Rig) -> None:
    class Spoils(Node):
        """Spoil."""

        class Inputs:
            items: list[int]

        class Outputs:
            items: list[int]

        async def run(self, ctx: ExecutionContext) -> None:
            items = ctx.inputs.get("items")
            await ctx.pulse_downstream(NodeOutput(items=items))
            items.append(4)

    given = [1, 2]
    assert (await rig.run(Spoils, {"items": given})).outputs == {"items": [1, 2]}
    assert given == [1, 2]


# --- outputs ----------------------------------------------------------------------------------------------


async def test_declared_outputs_are_checked_by_their_types(rig: Rig) -> None:
    class Makes(Node):
        """Make."""

        created_outputs = True

        async def run(self, ctx: ExecutionContext) -> None:
            await ctx.pulse_downstream(NodeOutput(count="3"))

    outcome = await rig.run(Makes, outputs={"count": int})
    assert outcome.failed is not None
    assert "a String, not a Number" in outcome.failed.message
    assert (await rig.run(Makes, outputs={"count": "String"})).outputs == {"count": "3"}
    assert (await rig.run(Makes, outputs=["count"])).outputs == {"count": "3"}
    with pytest.raises(ValueError, match="has no output other"):
        await rig.run(ClaimSender, {"sender": "a"}, outputs=["other"])


async def test_ports_made_from_a_list(rig: Rig) -> None:
    cases = [{"kind": "is", "port": "one", "value": 1}, {"kind": "is", "port": "two", "value": 2}]
    outcome = await rig.run(Pick, {"value": 2, "cases": cases})
    assert outcome.outputs == {"two": True}
    assert outcome.closed == ["one"]


async def test_the_size_of_a_value_is_limited(rig: Rig) -> None:
    @node
    async def repeat(text: str) -> str:
        """Repeat a text."""
        return text * 100

    outcome = await rig.run(repeat, {"text": "é" * 6}, value_limit=1000)
    assert outcome.failed is not None
    assert "repeat.value" in outcome.failed.message
    assert "1,202 bytes, and 1,000 are allowed" in outcome.failed.message
    assert (await rig.run(repeat, {"text": "é" * 6})).failed is None


async def test_wired_names_must_be_outputs(rig: Rig) -> None:
    with pytest.raises(ValueError, match="did you mean sender"):
        await rig.run(ClaimSender, {"sender": "a"}, wired=["sendr"])


# --- functions --------------------------------------------------------------------------------------------


class Counted(TypedDict):
    text: str
    length: int


async def test_functions(rig: Rig) -> None:
    @node
    async def shout(text: str) -> str:
        """Uppercase a text."""
        return text.upper()

    @node
    def count(text: str, extra: int = 1) -> Counted:
        """Count."""
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return {"text": text, "length": len(text) + extra}

    assert (await rig.run(shout, {"text": "a"})).outputs == {"value": "A"}
    assert (await rig.run(count, {"text": "abc"})).outputs == {"text": "abc", "length": 4}
    assert await shout("b") == "B"


# --- stops ------------------------------------------------------------------------------------------------


async def test_a_stop_before_the_body_begins_is_not_lost(rig: Rig) -> None:
    rig.cancel()
    outcome = await rig.run(ClaimSender, {"sender": "a"})
    assert outcome.cancelled
    assert outcome.attempts == 0
    assert rig.execution_tags == []
    assert (await rig.run(ClaimSender, {"sender": "a"})).outputs == {"sender": "a"}


async def test_the_error_after_a_stop_is_kept_as_a_detail(rig: Rig) -> None:
    begun = asyncio.Event()

    class Wraps(Node):
        """Raise after the stop."""

        async def run(self, ctx: ExecutionContext) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as stop:
                raise RuntimeError("cleanup") from stop

    running = rig.start(Wraps)
    await begun.wait()
    rig.cancel()
    outcome = await running
    assert outcome.cancelled
    assert outcome.failed is None
    assert outcome.after_stop is not None
    assert str(outcome.after_stop) == "RuntimeError: cleanup"


async def test_a_cancelled_test_takes_its_body_along(rig: Rig) -> None:
    begun = asyncio.Event()
    ended: list[bool] = []

    class Waits(Node):
        """Wait."""

        async def run(self, ctx: ExecutionContext) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

    running = rig.start(Waits)
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [True]


# --- HTTP -------------------------------------------------------------------------------------------------


async def test_prepared_answers_and_what_was_asked(rig: Rig) -> None:
    url = rig.respond("POST", "/page", status=503)
    rig.respond("POST", "/page", json={"é": [1]}, headers={"X-Mark": "1"})
    assert (await rig.run(Fetch, {"url": f"{url}?a=1"})).outputs == {"status": 503, "body": ""}
    for _ in range(2):
        assert (await rig.run(Fetch, {"url": url})).outputs == {"status": 200, "body": '{"é": [1]}'}
    first = rig.requests[0]
    assert (first.method, first.path, first.query) == ("POST", "/page", "a=1")
    assert first.headers["content-type"] == "application/json"
    assert first.json() == {"q": "é"}
    assert len(rig.requests) == 3


async def test_a_request_that_nothing_was_prepared_for_fails_the_test() -> None:
    rig = Rig()
    url = rig.respond("GET", "/page")
    with pytest.raises(AssertionError, match="POST /page"):
        await rig.run(Fetch, {"url": url})
    rig.close()


async def test_a_request_outside_of_a_run_fails_at_the_end() -> None:
    import httpx

    rig = Rig()
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{rig.url}/else")
    assert answer.status_code == 501
    assert "GET /else" in answer.text
    with pytest.raises(AssertionError, match="GET /else"):
        rig.close()


# --- failures and the plugin ------------------------------------------------------------------------------


async def test_a_failure_tells_message_type_and_the_authors_own_frames(rig: Rig) -> None:
    class Fails(Node):
        """Fail."""

        async def run(self, ctx: ExecutionContext) -> None:
            raise NodeError("nothing there")

    failed = (await rig.run(Fails)).failed
    assert failed is not None
    assert str(failed) == "NodeError: nothing there"
    assert failed.traceback is not None
    assert 'raise NodeError("nothing there")' in failed.traceback
    assert "weft/nodes" not in failed.traceback
    assert isinstance(failed.error, NodeError)


def test_the_plugin_is_light() -> None:
    code = """
import sys, pytest
before = set(sys.modules)
import weft.testing.plugin
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['weft', 'weft.testing', 'weft.testing.plugin']"
