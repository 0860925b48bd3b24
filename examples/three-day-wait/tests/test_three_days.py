"""Three days in a second: `program` runs the whole program on a database of its own, in a time that the test moves."""

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


async def test_it_asks_after_three_days_and_not_before(stage):
    run = await stage.start()
    await stage.advance(3 * DAY - timedelta(minutes=1))
    assert [wait.node for wait in await run.waits()] == ["delivered"]
    assert await run.outputs("delivered") == {}

    await stage.advance(timedelta(minutes=1))
    assert await run.settle() == "completed"
    assert (await run.outputs("delivered"))["value"] == "Ada"


async def test_a_stop_ends_the_wait(stage):
    run = await stage.start()
    await stage.advance(DAY)
    await run.stop()
    assert (await run.end()).status == "cancelled"
    assert await run.waits() == []
