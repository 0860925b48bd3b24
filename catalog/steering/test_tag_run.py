import pytest

from catalog.steering.tag_run import TagRun


async def test_created_inputs_in_source_order_then_tags(rig):
    outcome = await rig.run(TagRun, {"tags": ["last", "of_all"], "zeta": "first", "alpha": "second"})
    assert rig.execution_tags == [["first", "second", "last", "of_all"]]
    assert outcome.outputs == {"done": True}


async def test_any_text_becomes_a_tag_and_duplicates_after_that_are_dropped(rig):
    await rig.run(TagRun, {"who": "49151@s.whatsapp.net", "tags": ["49151@s.whatsapp.net", "a", "a"]})
    assert rig.execution_tags == [["49151_s_whatsapp_net-1efe080aa4c26dcf", "a"]]


async def test_no_tag_at_all_fails_saying_what_to_write(rig):
    outcome = await rig.run(TagRun)
    assert outcome.failed.message == "`tagRun` is given no tag"
    assert "TagRun { sender: message.sender }" in outcome.failed.error.hint
    assert rig.execution_tags == []


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({"sender": 17}, "`sender`"),
        ({"sender": None}, "`sender`"),
        ({"sender": True}, "`sender`"),
        ({"sender": ["a"]}, "`sender`"),
        ({"tags": [17]}, "`tags`"),
        ({"tags": ["a", None]}, "`tags`"),
        ({"sender": ""}, "`sender`"),
        ({"tags": ["a", ""]}, "`tags[1]`"),
    ],
)
async def test_what_is_no_text_fails_naming_the_input_and_writes_nothing(rig, inputs, named):
    outcome = await rig.run(TagRun, inputs)
    assert named in outcome.failed.message
    assert "tagRun" in outcome.failed.message
    assert rig.execution_tags == []
    assert outcome.closed == ["done"]


async def test_more_tags_than_a_call_takes_are_refused(rig):
    outcome = await rig.run(TagRun, {"tags": [f"t{number}" for number in range(65)]})
    assert "at most 64" in outcome.failed.message
    assert rig.execution_tags == []


async def test_tags_once_where_a_crash_makes_it_run_again(rig):
    rig.crash_after(1)
    outcome = await rig.run(TagRun, {"sender": "user_7"})
    assert outcome.attempts == 2
    assert rig.execution_tags == [["user_7"]]
    assert outcome.outputs == {"done": True}
