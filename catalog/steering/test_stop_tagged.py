import pytest

from catalog.steering.stop_tagged import StopTagged
from catalog.steering.tag_run import TagRun
from weft import StopSelf


async def test_spares_its_own_run_unless_told_otherwise(rig):
    outcome = await rig.run(StopTagged, {"sender": "user_7"})
    assert rig.stops == [("user_7", StopSelf.KEEP)]
    assert outcome.outputs == {"done": True}


async def test_all_its_tags_in_source_order(rig):
    await rig.run(StopTagged, {"tags": ["c", "a"], "z": "a", "y": "+33 6 12"})
    assert [tag for tag, _ in rig.stops] == ["a", "_33_6_12-9df142046f300e74", "c"]


async def test_include_self_of_a_run_without_the_tag_comes_back(rig):
    outcome = await rig.run(StopTagged, {"sender": "user_7", "includeSelf": True})
    assert rig.stops == [("user_7", StopSelf.INCLUDE)]
    assert outcome.outputs == {"done": True}


async def test_include_self_of_a_run_with_the_tag_never_says_done(rig):
    await rig.run(TagRun, {"sender": "user_7"})
    outcome = await rig.run(StopTagged, {"sender": "user_7", "includeSelf": True})
    assert outcome.cancelled
    assert outcome.outputs == {}


@pytest.mark.parametrize("value", [17, None, False, {"a": "b"}])
async def test_what_is_no_text_fails_naming_the_input_and_stops_nobody(rig, value):
    outcome = await rig.run(StopTagged, {"sender": value})
    assert "`sender`" in outcome.failed.message
    assert rig.stops == []


async def test_no_tag_at_all_fails(rig):
    outcome = await rig.run(StopTagged, {"includeSelf": True})
    assert outcome.failed.message == "`stopTagged` is given no tag"
    assert rig.stops == []


async def test_asks_once_where_a_crash_makes_it_run_again(rig):
    rig.crash_after(1)
    outcome = await rig.run(StopTagged, {"sender": "user_7"})
    assert outcome.attempts == 2
    assert rig.stops == [("user_7", StopSelf.KEEP)]
    assert outcome.outputs == {"done": True}
