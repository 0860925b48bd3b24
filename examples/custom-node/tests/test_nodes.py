"""Run them in this folder with `pytest`. The fixture `rig` comes with weft; no database is needed."""

from nodes.claim_sender import ClaimSender
from nodes.first_name import first_name

from weft import StopSelf


async def test_claims_the_sender(rig):
    outcome = await rig.run(ClaimSender, {"sender": "user_7"})
    assert outcome.outputs == {"sender": "user_7"}
    assert rig.execution_tags == [["user_7"]]
    assert rig.stops == [("user_7", StopSelf.KEEP)]


async def test_an_illegal_tag_fails_before_anything_is_stopped(rig):
    outcome = await rig.run(ClaimSender, {"sender": "user 7"})
    assert "' '" in outcome.failed.message
    assert rig.execution_tags == []
    assert rig.stops == []


async def test_a_crash_after_tagging_neither_tags_nor_stops_twice(rig):
    rig.crash_after(1)
    outcome = await rig.run(ClaimSender, {"sender": "user_7"})
    assert outcome.attempts == 2
    assert rig.execution_tags == [["user_7"]]
    assert rig.stops == [("user_7", StopSelf.KEEP)]


async def test_first_name(rig):
    assert (await rig.run(first_name, {"full_name": "Ada Lovelace"})).outputs == {"value": "Ada"}
    assert (await rig.run(first_name, {"full_name": " "})).outputs == {"value": "stranger"}
