from datetime import datetime

import pytest

from catalog.waits.wait_until import WaitUntil


@pytest.mark.parametrize(
    ("until", "woke"),
    [
        ("2030-01-31T09:00:00+01:00", "2030-01-31T08:00:00.000Z"),
        ("2030-01-31T09:00:00+05:30", "2030-01-31T03:30:00.000Z"),
        ("2030-01-31T09:00:00.0001Z", "2030-01-31T09:00:00.001Z"),
    ],
)
async def test_it_waits_for_the_right_instant(rig, until, woke):
    outcome = await rig.run(WaitUntil, {"until": until, "value": 7})
    assert outcome.outputs == {"value": 7, "wokeAt": woke}
    assert outcome.waits[0]["due"] == woke


async def test_an_instant_that_is_over_wakes_at_once(rig):
    rig.now = datetime.fromisoformat("2030-06-01T00:00:00Z")
    outcome = await rig.run(WaitUntil, {"until": "2030-05-31T23:59:00Z"})
    assert outcome.outputs == {"wokeAt": "2030-06-01T00:00:00.000Z"}


@pytest.mark.parametrize("until", ["2030-01-31T09:00:00", "2030-01-31", "monday", "", "0001-01-01T00:00:00+05:00"])
async def test_what_is_no_instant_fails_naming_the_input(rig, until):
    outcome = await rig.run(WaitUntil, {"until": until})
    assert outcome.failed.type == "InputError"
    assert "the input `until` of `waitUntil`" in outcome.failed.message
    assert outcome.waits == []
