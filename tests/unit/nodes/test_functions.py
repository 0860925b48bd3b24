"""`@node` functions: names, ports, and what becomes of arguments and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, NotRequired, TypedDict

import pytest
from pydantic import BaseModel

from weft import InputError, Port, node
from weft.nodes.api import node_class
from weft.nodes.reading.functions import type_name_of
from weft.nodes.reading.spec import spec_of
from weft.testing import CLOSED, Rig


@pytest.mark.parametrize(
    ("function", "type_name"),
    [("shout", "Shout"), ("make_title", "MakeTitle"), ("_private", "Private"), ("to_html5", "ToHtml5")],
)
def test_the_name_in_capitals_is_the_type(function: str, type_name: str) -> None:
    assert type_name_of(function) == type_name


@node(label="Make it loud", pure=True, rerun=False, hidden=True)
async def shout(text: str, times: int = Port(2, ge=1), mark: Literal["!", "?"] = "!") -> str:
    """Uppercase a text.

    Louder with each time.
    """
    return text.upper() + mark * times


class Page(TypedDict):
    text: str
    next: NotRequired[int]


@dataclass
class Point:
    kind: ClassVar[str] = "point"
    x: float
    names: list[str] = field(default_factory=list)


class Pair(NamedTuple):
    left: int
    right: str | None


class Answer(BaseModel):
    model_config = {"frozen": True}
    ok: bool
    rows: list[dict[str, Any]]


def ports(function: Any) -> tuple[dict[str, str], dict[str, str]]:
    spec = spec_of(node_class(function))
    return (
        {port.name: str(port.type) for port in spec.inputs},
        {port.name: str(port.type) for port in spec.outputs},
    )


def test_parameters_are_inputs_and_flags_are_flags() -> None:
    spec = spec_of(node_class(shout))
    assert (spec.type, spec.label, spec.pure, spec.rerun, spec.hidden) == ("Shout", "Make it loud", True, False, True)
    assert spec.description == "Uppercase a text.\n\nLouder with each time."
    assert ports(shout) == ({"text": "String", "times": "Number", "mark": "String"}, {"value": "String"})
    assert [port.required for port in spec.inputs] == [True, False, False]
    assert spec.inputs[1].domain is not None and spec.inputs[1].domain.minimum == 1
    assert spec.inputs[2].domain is not None and spec.inputs[2].domain.options == ("!", "?")


async def test_the_function_stays_a_function(rig: Rig) -> None:
    assert await shout("a", 1) == "A!"
    assert (await rig.run(shout, {"text": "a", "mark": "?"})).outputs == {"value": "A??"}


async def test_an_absent_input_leaves_the_parameters_default(rig: Rig) -> None:
    assert (await rig.run(shout, {"text": "a", "times": CLOSED, "mark": CLOSED})).outputs == {"value": "A!!"}


async def test_results_become_outputs(rig: Rig) -> None:
    @node
    async def page(last: bool) -> Page:
        """Page."""
        return {"text": "t"} if last else {"text": "t", "next": 2}

    @node
    async def point() -> Point:
        """Point."""
        return Point(1.5, ["a"])

    @node
    async def pair() -> Pair:
        """Pair."""
        return Pair(1, None)

    @node
    async def answer() -> Answer:
        """Answer."""
        return Answer(ok=True, rows=[{"a": 1}])

    assert ports(page)[1] == {"text": "String", "next": "Number"}
    assert ports(point)[1] == {"x": "Number", "names": "List[String]"}
    assert ports(pair)[1] == {"left": "Number", "right": "String | Null"}
    assert ports(answer)[1] == {"ok": "Boolean", "rows": "List[JsonDict]"}
    assert (await rig.run(page, {"last": False})).outputs == {"text": "t", "next": 2}
    outcome = await rig.run(page, {"last": True})
    assert (outcome.outputs, outcome.closed) == ({"text": "t"}, ["next"])
    assert (await rig.run(point)).outputs == {"x": 1.5, "names": ["a"]}
    assert (await rig.run(pair)).outputs == {"left": 1, "right": None}
    assert (await rig.run(answer)).outputs == {"ok": True, "rows": [{"a": 1}]}


async def test_none_is_an_output_only_where_a_value_is_declared(rig: Rig) -> None:
    @node
    async def nothing() -> None:
        """Nothing."""

    @node
    async def maybe() -> str | None:
        """Maybe."""
        return None

    assert ports(nothing)[1] == {}
    assert (await rig.run(nothing)).outputs == {}
    assert (await rig.run(maybe)).outputs == {"value": None}


async def test_a_wrong_result_fails_the_node(rig: Rig) -> None:
    @node
    async def wrong() -> int:
        """Wrong."""
        return "1"  # type: ignore[return-value]

    @node
    async def extra() -> Page:
        """Extra."""
        return {"text": "t", "nxet": 1}  # type: ignore[typeddict-unknown-key]

    outcome = await rig.run(wrong)
    assert outcome.failed is not None and "a String, not a Number" in outcome.failed.message
    outcome = await rig.run(extra)
    assert outcome.failed is not None and "did you mean `next`?" in outcome.failed.message


async def test_a_whole_number_is_an_int_for_a_parameter_that_says_int(rig: Rig) -> None:
    @node
    async def kinds(a: int, b: float, c: Any) -> list[str]:
        """Kinds."""
        return [type(each).__name__ for each in (a, b, c)]

    assert (await rig.run(kinds, {"a": 3.0, "b": 3.0, "c": 3.0})).outputs == {"value": ["int", "float", "float"]}


async def test_an_exception_fails_the_node_with_the_authors_frames(rig: Rig) -> None:
    @node
    def fails(text: str) -> str:
        """Fail."""
        raise InputError(f"not {text}")

    outcome = await rig.run(fails, {"text": "this"})
    assert outcome.failed is not None
    assert (outcome.failed.type, outcome.failed.message) == ("InputError", "not this")
    assert "test_functions.py" in (outcome.failed.traceback or "")


async def test_a_plain_function_may_block_without_holding_up_the_loop(rig: Rig) -> None:
    import asyncio
    import threading

    gate = threading.Event()

    @node
    def block() -> str:
        """Block."""
        assert gate.wait(20), "the loop never came round"
        return "done"

    running = rig.start(block)
    await asyncio.sleep(0)
    gate.set()
    assert (await running).outputs == {"value": "done"}


def test_what_is_no_node_is_said_to_be_none() -> None:
    with pytest.raises(TypeError, match="neither a Node class nor an @node function"):
        node_class(len)
