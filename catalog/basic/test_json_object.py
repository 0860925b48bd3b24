from catalog.basic.json_object import JsonObject


async def test_each_input_is_a_key_in_written_order(rig):
    outcome = await rig.run(JsonObject, {"zeta": 1, "alpha": [True], "none": None, "inner": {"a": "b"}})
    assert outcome.outputs == {"value": {"zeta": 1, "alpha": [True], "none": None, "inner": {"a": "b"}}}
    assert list(outcome.outputs["value"]) == ["zeta", "alpha", "none", "inner"]


async def test_no_inputs_make_an_empty_object(rig):
    assert (await rig.run(JsonObject)).outputs == {"value": {}}
