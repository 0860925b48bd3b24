from typing import Any

import pytest

from catalog.choice.switch import Switch


async def chosen(rig, value: Any, *cases: dict[str, Any]) -> str | None:
    """The port that says true; every other must be closed."""
    outcome = await rig.run(Switch, {"value": value, "cases": list(cases)})
    assert outcome.failed is None, outcome.failed
    assert all(said is True for said in outcome.outputs.values())
    assert len(outcome.outputs) <= 1
    assert {*outcome.outputs, *outcome.closed} == {case["port"] for case in cases}
    return next(iter(outcome.outputs), None)


def case(kind: str, port: str = "p", **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "port": port, **fields}


@pytest.mark.parametrize(
    ("value", "test", "matches"),
    [
        ("a", case("equals", value="a"), True),
        ("a", case("equals", value="A"), False),
        (1, case("equals", value=1.0), True),
        (True, case("equals", value=1), False),
        (0, case("equals", value=False), False),
        ({"a": [1]}, case("equals", value={"a": [1.0]}), True),
        (2, case("in", value=[1, 2]), True),
        (True, case("in", value=[1, 2]), False),
        ("banana", case("contains", value="nan"), True),
        ("banana", case("contains", value=""), True),
        (["a", "b"], case("contains", value="b"), True),
        ([True], case("contains", value=1), False),
        (None, case("contains", value="a"), False),
        ("order 17", case("matches", value=r"\d+"), True),
        ("order 17", case("matches", value=r"^\d+$"), False),
        (17, case("matches", value=r"\d+"), False),
        (5, case("gt", value=5), False),
        (5, case("gte", value=5), True),
        (5, case("lt", value=5), False),
        (5, case("lte", value=5), True),
        (5.5, case("gt", value=5), True),
        (True, case("gt", value=0), False),
        (None, case("lt", value=0), False),
        ("5", case("gte", value=5), False),
        (5, case("between", min=5, max=9), True),
        (9, case("between", min=5, max=9), True),
        (5, case("between", min=5, max=9, inclusive=False), False),
        (6, case("between", min=5, max=9, inclusive=False), True),
        (10, case("between", min=5, max=9, inclusive=True), False),
        (None, case("otherwise"), True),
    ],
)
async def test_kinds(rig, value, test, matches):
    assert await chosen(rig, value, test) == ("p" if matches else None)


async def test_the_first_match_in_written_order_wins_and_the_rest_close(rig):
    cases = (
        case("gte", "big", value=10),
        case("gte", "some", value=5),
        case("equals", "seven", value=7),
        case("otherwise", "rest"),
    )
    assert await chosen(rig, 7, *cases) == "some"
    assert await chosen(rig, 12, *cases) == "big"
    assert await chosen(rig, 1, *cases) == "rest"


async def test_without_a_match_every_port_closes(rig):
    assert await chosen(rig, "c", case("equals", "a", value="a"), case("equals", "b", value="b")) is None


async def test_a_later_case_is_not_tried(rig):
    # A pattern that does not compile would fail, were it looked at.
    assert await chosen(rig, "a", case("equals", "a", value="a"), case("matches", "b", value="(")) == "a"
