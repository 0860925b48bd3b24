import pytest

from catalog.waits.start_run import StartRun
from weft import normalise_tag


async def test_it_starts_the_run_once_and_tells_how_it_ended(rig):
    rig.crash_after(1)
    rig.signal({"status": "completed"})
    outcome = await rig.run(
        StartRun, {"program": "child.weft", "inputs": {"text": {"value": "hi"}}, "tags": ["a", "b c", "a"]}
    )
    (started,) = rig.started_runs
    assert (started.program, started.inputs) == ("child.weft", {"text": {"value": "hi"}})
    assert started.tags == ["a", normalise_tag("b c")]
    assert outcome.outputs == {"run": started.run, "status": "completed"}
    assert outcome.closed == ["reason"]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_run_that_does_not_complete_is_no_failure_of_the_node(rig, status):
    rig.signal({"status": status, "reason": "because"})
    outcome = await rig.run(StartRun, {"program": "child.weft"})
    assert outcome.failed is None
    assert outcome.outputs == {"run": rig.started_runs[0].run, "status": status, "reason": "because"}


async def test_without_waiting_there_is_no_end(rig):
    outcome = await rig.run(StartRun, {"program": "child.weft", "wait": False})
    assert outcome.outputs == {"run": rig.started_runs[0].run}
    assert outcome.closed == ["status", "reason"]
    assert outcome.waits == []


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"inputs": {"text": "hi"}}, "{node: {port: value}}"),
        ({"tags": ["a", ""]}, "`tags[1]`"),
        ({"program": ""}, "path of a program"),
    ],
)
async def test_what_cannot_be_started_is_refused_before_anything_starts(rig, inputs, words):
    outcome = await rig.run(StartRun, {"program": "child.weft", **inputs})
    assert words in outcome.failed.message
    assert rig.started_runs == []
