from catalog.choice.not_ import Not


async def test_turns_it_around(rig):
    assert (await rig.run(Not, {"value": True})).outputs == {"value": False}
    assert (await rig.run(Not, {"value": False})).outputs == {"value": True}


async def test_a_number_is_no_boolean(rig):
    outcome = await rig.run(Not, {"value": 0})
    assert "the input `value` of `not`" in outcome.failed.message
