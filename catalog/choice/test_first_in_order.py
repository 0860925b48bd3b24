from catalog.choice.first_in_order import FirstInOrder
from weft.testing import CLOSED


async def test_the_first_in_written_order_not_by_name(rig):
    assert (await rig.run(FirstInOrder, {"z": "one", "a": "two"})).outputs == {"value": "one"}


async def test_a_closed_input_is_passed_over(rig):
    assert (await rig.run(FirstInOrder, {"a": CLOSED, "b": "two", "c": "three"})).outputs == {"value": "two"}


async def test_null_and_false_are_values(rig):
    outcome = await rig.run(FirstInOrder, {"a": None, "b": "two"})
    assert outcome.outputs == {"value": None}
    outcome = await rig.run(FirstInOrder, {"a": False, "b": True})
    assert outcome.outputs == {"value": False}


async def test_nothing_comes_out_of_nothing(rig):
    outcome = await rig.run(FirstInOrder, {"a": CLOSED, "b": CLOSED})
    assert outcome.outputs == {}
    assert outcome.closed == ["value"]
    assert outcome.failed is None
