from typing import Any

import pytest

from catalog.basic.cast import Cast


async def cast(rig, value: Any, type_: Any) -> Any:
    outcome = await rig.run(Cast, {"value": value}, outputs={"value": type_})
    assert outcome.failed is None, outcome.failed
    return outcome.outputs["value"]


@pytest.mark.parametrize(
    ("value", "type_", "becomes"),
    [
        ("12", float, 12),
        (" 2.5 ", float, 2.5),
        ("TRUE", bool, True),
        ("0", bool, False),
        (1, bool, True),
        (True, float, 1),
        (3, str, "3"),
        (True, str, "true"),
        (None, str, "null"),
        ([1, "a"], str, '[1,"a"]'),
        ("already", str, "already"),
        ('{"a": [1, null]}', dict[str, Any], {"a": [1, None]}),
        ('["1", "2"]', list[str], ["1", "2"]),
        (["1", "2"], list[float], [1, 2]),
        ({"a": "1"}, dict[str, float], {"a": 1}),
        (None, str | None, None),
    ],
)
async def test_converts(rig, value, type_, becomes):
    got = await cast(rig, value, type_)
    assert got == becomes
    assert type(got) is type(becomes)


@pytest.mark.parametrize(
    ("value", "type_", "said"),
    [
        ("twelve", float, '`"twelve"` cannot become a Number'),
        (2, bool, "`2` cannot become"),
        ("yes", bool, "cannot become"),
        (["1", "x"], list[float], "[1]"),
        ({"messages": [{"role": "1"}, {"role": "x"}]}, dict[str, list[dict[str, float]]], "messages[1].role"),
        ("{", dict[str, Any], "not a JsonDict"),
        ("NaN", float, "cannot become a Number"),
        ("1e400", float, "too large"),
    ],
)
async def test_fails_naming_the_part_that_cannot_be_converted(rig, value, type_, said):
    outcome = await rig.run(Cast, {"value": value}, outputs={"value": type_})
    assert outcome.failed is not None
    assert outcome.failed.message.startswith("the input `value` of `cast`: ")
    assert said in outcome.failed.message
    assert outcome.closed == ["value"]
