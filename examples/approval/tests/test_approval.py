"""What a person may do with the draft, and what happens when nobody does anything. Run them here with `pytest`."""

from datetime import timedelta
from pathlib import Path

import pytest

from weft.testing import program

ROOT = Path(__file__).parents[1]
DAY = timedelta(days=1)


@pytest.fixture
async def stage():
    async with program((ROOT / "src" / "main.weft").read_text("utf-8"), project=ROOT) as stage:
        yield stage


async def shown(run):
    """What the run's Debug nodes have shown, in order."""
    return [event["text"] for event in await run.events() if event["kind"] == "log_line"]


async def test_an_approved_draft_is_sent_as_it_is(stage):
    run = await stage.start()
    await run.answer({"verdict": "approve"})
    assert (await run.end()).status == "completed"
    [text] = await shown(run)
    assert text.startswith("Hello! You wrote: “My parcel is late.")


async def test_an_edited_draft_is_sent_as_the_person_wrote_it(stage):
    run = await stage.start()
    await run.answer({"verdict": "approve", "answer": "Gladly."})
    await run.end()
    assert await shown(run) == ["Gladly."]


async def test_a_rejected_draft_is_not_sent(stage):
    run = await stage.start()
    await run.answer({"verdict": "reject"})
    await run.end()
    assert await shown(run) == ["Dropped: nothing was sent."]


async def test_after_a_day_it_reminds_and_can_still_be_answered(stage):
    run = await stage.start()
    await stage.advance(DAY)
    assert [wait.node for wait in await run.waits()] == ["second"]
    await run.answer({"verdict": "approve", "answer": "Gladly."})
    await run.end()
    assert await shown(run) == ["An answer has been waiting for a day: weft forms", "Gladly."]


async def test_after_three_days_it_closes(stage):
    run = await stage.start()
    await stage.advance(DAY)
    await stage.advance(2 * DAY)
    assert await run.settle() == "completed"
    assert await run.waits() == []
    assert (await shown(run))[-1] == "Closed after three days without an answer: nothing was sent."
