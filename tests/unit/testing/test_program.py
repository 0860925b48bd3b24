"""Whole programs in a test: real runs on a real database, in a time that the test lets pass."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest

from weft import ExecutionContext, Node, NodeError, NodeOutput, Retry, node
from weft.errors import DoesNotCompile
from weft.testing import Stage, StagedRun, program

DAY = timedelta(days=1)

APPROVAL = """
draft = Text { value: "Hello Ann" }
ask = HumanQuery {
  title: "Send it?"
  draft: draft.value
  timeoutSecs: 259200
  fields: [{ "kind": "display", "key": "draft" }, { "kind": "approve_reject", "key": "ok" }]
}
sent = Text { _should_flow: ask.ok_approved  value: "sent" }
dropped = Text { _should_flow: ask.ok_rejected  value: "dropped" }
late = Text { _should_flow: ask.timedOut  value: "late" }
"""


@pytest.fixture
async def approval(server: str) -> AsyncIterator[Stage]:
    async with program(APPROVAL, server=server) as stage:
        yield stage


async def test_three_days_in_a_second(server: str) -> None:
    source = """
    first = Wait { seconds: 86400 }
    second = Wait { seconds: 172800  value: first.wokeAt }
    """
    async with program(source, server=server) as stage:
        begun, real = await stage.now(), time.monotonic()
        run = await stage.start()
        assert await run.settle() == "waiting"
        await stage.advance(DAY + timedelta(hours=1))
        assert await run.settle() == "waiting"
        assert [each.node for each in await run.waits()] == ["second"]
        assert (await run.end()).status == "completed"
        assert timedelta(days=3) <= await stage.now() - begun < timedelta(days=3, minutes=1)
        assert time.monotonic() - real < 10


async def test_all_of_a_wait_passes_for_a_run_that_was_only_just_started(server: str) -> None:
    async with program("nap = Wait { seconds: 86400 }", server=server) as stage:
        run = await stage.start()
        await stage.advance(DAY)
        assert await run.settle() == "completed"


async def test_an_answer_sends_the_run_on(approval: Stage) -> None:
    run = await approval.start()
    (form,) = await run.waits()
    assert form.node == "ask"
    assert form.spec["title"] == "Send it?"
    assert form.spec["fields"][0] == {"kind": "display", "key": "draft", "value": "Hello Ann"}
    await run.answer({"ok": "approve"})
    assert (await run.end()).status == "completed"
    assert await run.outputs("ask") == {"ok_approved": True}
    assert await run.outputs("sent") == {"value": "sent"}
    assert await run.outputs("dropped") == await run.outputs("late") == {}


async def test_a_wrong_answer_is_told_and_leaves_the_form_open(approval: Stage) -> None:
    run = await approval.start()
    with pytest.raises(AssertionError, match="neither approve nor reject"):
        await run.answer({"ok": "perhaps"})
    assert len(await run.waits()) == 1


async def test_without_an_answer_the_time_runs_out(approval: Stage) -> None:
    run = await approval.start()
    await approval.advance(3 * DAY - timedelta(minutes=1))
    assert await run.settle() == "waiting"
    assert (await run.end()).status == "completed"
    assert await run.outputs("ask") == {"timedOut": True}
    assert await run.outputs("late") == {"value": "late"}


async def test_a_skip_is_neither(approval: Stage) -> None:
    run = await approval.start()
    await run.skip()
    assert (await run.end()).status == "completed"
    assert {event["node"] for event in await run.events() if event["kind"] == "node_skipped"} == {
        "ask",
        "sent",
        "dropped",
        "late",
    }


async def test_a_stop_ends_a_waiting_run(approval: Stage) -> None:
    run, other = await approval.start(tags=["a"]), await approval.start()
    assert await run.settle() == "waiting"
    await run.stop()
    assert (await run.end()).status == "cancelled"
    assert await run.waits() == []
    assert await other.settle() == "waiting"


async def test_a_form_behind_a_closed_gate_never_opens(server: str) -> None:
    source = """
    no = ExecPython -> (go: Boolean) { code: "return {'go': False}" }
    ask = HumanQuery { _should_flow: no.go  fields: [{ "kind": "text_input", "key": "name" }] }
    """
    async with program(source, server=server) as stage:
        run = await stage.start()
        assert (await run.end()).status == "completed"
        assert not [event for event in await run.events() if event["kind"] == "suspension_registered"]


async def test_two_open_forms_are_told_apart_by_their_nodes(server: str) -> None:
    source = """
    left = HumanQuery { fields: [{ "kind": "text_input", "key": "name" }] }
    right = HumanQuery { fields: [{ "kind": "text_input", "key": "name" }] }
    """
    async with program(source, server=server) as stage:
        run = await stage.start()
        with pytest.raises(AssertionError, match="there are 2"):
            await run.answer({"name": "Ann"})
        await run.answer({"name": "Ann"}, node="right")
        assert [each.node for each in await run.waits()] == ["left"]
        with pytest.raises(AssertionError, match="does not end by itself: it waits at `left` for a form"):
            await run.end()
        await run.answer({"name": "Bob"})
        assert (await run.end()).status == "completed"
        assert (await run.outputs("left"), await run.outputs("right")) == ({"name": "Bob"}, {"name": "Ann"})


async def test_a_request_ends_a_webhook(server: str) -> None:
    async with program("hook = WaitForWebhook { }", server=server) as stage:
        run = await stage.start()
        await run.request({"paid": True}, query={"id": "7"})
        assert (await run.end()).status == "completed"
        assert await run.outputs("hook") == {"body": {"paid": True}, "headers": {}, "query": {"id": "7"}}


class Flaky(Node):
    """Fail twice."""

    retry = Retry(attempts=3, first=timedelta(hours=1), max=timedelta(days=1))
    tries: ClassVar[list[int]] = []

    class Outputs:
        tries: int

    async def run(self, ctx: ExecutionContext) -> None:
        self.tries.append(1)
        if len(self.tries) < 3:
            raise NodeError("not yet")
        await ctx.pulse_downstream(NodeOutput(tries=len(self.tries)))


async def test_a_retry_waits_its_time(server: str) -> None:
    Flaky.tries.clear()
    async with program("flaky = Flaky { }", nodes=[Flaky], server=server) as stage:
        begun = await stage.now()
        run = await stage.start()
        assert await run.settle() == "waiting"
        assert (await run.end()).status == "completed"
        assert await run.outputs("flaky") == {"tries": 3}
        assert timedelta(hours=3) <= await stage.now() - begun < timedelta(hours=3, minutes=1)


async def test_a_function_may_be_brought_along(server: str) -> None:
    @node
    async def shout(text: str) -> str:
        """Uppercase."""
        return text.upper()

    async with program('loud = Shout { text: "hi" }', nodes=[shout], server=server) as stage:
        run = await stage.start()
        assert (await run.end()).status == "completed"
        assert await run.outputs("loud") == {"value": "HI"}


async def test_what_does_not_compile_says_why(server: str) -> None:
    with pytest.raises(DoesNotCompile, match="Shuot"):
        async with program("loud = Shuot { }", server=server):
            raise AssertionError("there is no program")


async def test_a_deadline_comes_in_its_time(approval: Stage) -> None:
    run: Any = await approval.start(deadline=timedelta(hours=2))
    end = await run.end()
    assert (end.status, end.reason) == ("cancelled", "Deadline reached")


PARENT = """
start = StartRun { program: "below/child.weft"  inputs: { "text": { "value": "from above" } }  tags: ["child"] }
status = Debug { data: start.status }
"""


async def test_a_run_below_another_starts_from_a_file_and_is_waited_for(server: str) -> None:
    child = 'text = Text { value: "of its own" }\nwait = Wait { seconds: 86400  value: text.value }\n'
    async with program(PARENT, files={"below/child.weft": child}, server=server) as stage:
        run = await stage.start()
        assert await run.settle() == "waiting"
        (wait,) = await run.waits()
        assert wait.kind == "run"
        below = StagedRun(stage, UUID(wait.spec["run"]))
        assert await below.settle() == "waiting"
        assert (await run.end()).status == "completed"
        assert (await below.state()).status == "completed"
        assert (await below.outputs("wait"))["value"] == "from above"
        assert await run.outputs("start") == {"run": str(below.id), "status": "completed"}


async def test_a_stop_ends_the_runs_below(server: str) -> None:
    child = "wait = Wait { seconds: 86400 }"
    parent = 'start = StartRun { program: "child.weft" }'
    async with program(parent, files={"child.weft": child}, server=server) as stage:
        run = await stage.start()
        (wait,) = await run.waits()
        await run.stop("enough")
        assert (await StagedRun(stage, UUID(wait.spec["run"])).end()).status == "cancelled"


@pytest.mark.parametrize(
    ("child", "words"),
    [
        (None, "no such file"),
        ("text = Text { value: 7 }\nb = Nothing { }", "does not compile"),
        ('other = Text { value: "x" }', "no node `text`"),
    ],
)
async def test_a_run_that_cannot_be_started_fails_the_node(server: str, child: str | None, words: str) -> None:
    files = {} if child is None else {"below/child.weft": child}
    async with program(PARENT, files=files, server=server) as stage:
        run = await stage.start()
        end = await run.end()
        assert end.status == "failed"
        assert words in str(end.error)


async def test_a_project_brings_its_files_and_nodes(server: str, tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "shout.py").write_text(
        'from weft import node\n\n@node\nasync def shout(text: str) -> str:\n    "Shout."\n    return text.upper()\n'
    )
    (tmp_path / "hello.txt").write_text("hello")
    async with program('loud = Shout { text: @file("hello.txt") }', project=tmp_path, server=server) as stage:
        run = await stage.start()
        assert (await run.end()).status == "completed"
        assert await run.outputs("loud") == {"value": "HELLO"}
    with pytest.raises(ValueError, match="of a project, or files of its own"):
        async with program("", project=tmp_path, files={"a": "b"}, server=server):
            raise AssertionError("there is no program")
