from catalog.basic.list import List


async def test_the_inputs_in_written_order_whatever_their_names(rig):
    outcome = await rig.run(List, {"z": "first", "a": "second", "m": "third"})
    assert outcome.outputs == {"value": ["first", "second", "third"]}


async def test_null_is_an_item_and_no_inputs_are_an_empty_list(rig):
    assert (await rig.run(List, {"a": None, "b": 1})).outputs == {"value": [None, 1]}
    assert (await rig.run(List)).outputs == {"value": []}
