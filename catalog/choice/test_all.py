import pytest

from catalog.choice.all import All
from weft.testing import CLOSED


async def test_yes_where_nothing_is_false(rig):
    assert (await rig.run(All, {"a": True, "b": True})).outputs == {"yes": True}


@pytest.mark.parametrize("value", [0, "", None, [], 0.0, "false"])
async def test_only_false_itself_says_no(rig, value):
    assert (await rig.run(All, {"a": True, "b": value})).outputs == {"yes": True}


async def test_a_false_closes_yes_and_never_emits_false(rig):
    outcome = await rig.run(All, {"a": True, "b": False, "c": True})
    assert outcome.outputs == {}
    assert outcome.closed == ["yes"]
    assert outcome.failed is None


async def test_without_inputs_it_fails(rig):
    outcome = await rig.run(All)
    assert outcome.failed.message == "`all` has no inputs to look at"


async def test_a_closed_input_is_skipped(rig):
    with pytest.raises(ValueError, match="skipped"):
        await rig.run(All, {"a": True, "b": CLOSED})
