import pytest

from catalog.waits.wait import Wait
from weft.testing import CLOSED


async def test_it_passes_the_value_on_and_says_when_it_woke(rig):
    outcome = await rig.run(Wait, {"seconds": 3 * 86_400, "value": {"a": None}})
    assert outcome.outputs == {"value": {"a": None}, "wokeAt": "2030-01-04T00:00:00.000Z"}


async def test_without_a_value_it_only_waits(rig):
    outcome = await rig.run(Wait, {"seconds": 0.25})
    assert outcome.outputs == {"wokeAt": "2030-01-01T00:00:00.250Z"}
    assert outcome.closed == ["value"]


async def test_null_is_a_value(rig):
    outcome = await rig.run(Wait, {"seconds": 1, "value": None})
    assert outcome.outputs["value"] is None


async def test_it_does_not_wait_for_a_value_that_never_comes(rig):
    with pytest.raises(ValueError, match="would be skipped"):
        await rig.run(Wait, {"seconds": 1, "value": CLOSED})


async def test_a_crash_does_not_begin_the_time_anew(rig):
    rig.crash_after(1)
    outcome = await rig.run(Wait, {"seconds": 60})
    assert len(outcome.waits) == 1
    assert outcome.outputs == {"wokeAt": "2030-01-01T00:01:00.000Z"}


@pytest.mark.parametrize(("seconds", "words"), [(-1, "seconds"), (1e300, "too long"), (4e9, "a hundred years")])
async def test_seconds_that_are_no_time(rig, seconds, words):
    outcome = await rig.run(Wait, {"seconds": seconds})
    assert words in outcome.failed.message
    assert outcome.waits == []
