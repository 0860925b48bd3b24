"""A node class to a node type."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import pytest

from weft import (
    Condition,
    CreatedInputs,
    EntryField,
    EntryKind,
    ExecutionContext,
    MustOverride,
    Node,
    Port,
    PortsFromConfig,
    PortTemplate,
    Rule,
)
from weft.errors import NodeFileError
from weft.lang import metadata
from weft.lang.graph import MISSING, Domain
from weft.lang.types import BOOLEAN, NUMBER, STRING, Variable
from weft.nodes.reading.spec import label_of, spec_of

T = TypeVar("T")


class _Base(Node):
    async def run(self, ctx: ExecutionContext) -> None: ...


class Everything(_Base):
    """Everything a class may say.

    With a second paragraph.
    """

    label = "All of it"
    pure = True
    rerun = False
    hidden = True
    cast_ports = True
    created_inputs = CreatedInputs(str, required=False)
    created_outputs = True
    one_of_required = (("optional", "nullable"),)
    validate = (Rule(Condition("config_nonempty", "cases"), "say at least one case"),)
    ports_from_config = PortsFromConfig(
        "cases",
        [
            EntryKind(
                "between",
                "port",
                [EntryField("min", "number", required=True), EntryField("inclusive", type=bool)],
                adds_inputs=[PortTemplate("{key}_in", str, required=True)],
                adds_outputs=[PortTemplate("{key}", bool)],
            ),
            EntryKind("otherwise", "port", catch_all=True),
        ],
        match_input="value",
    )

    class Inputs:
        value: T
        required: str
        optional: str = Port(required=False)
        nullable: str | None
        with_default: int = 3
        null_default: str | None = None
        bounded: float = Port(0.5, ge=0, le=1, description="from 0 to 1", label="Bounded", widget="slider")
        whole: int = Port(ge=1, whole=True)
        choice: Literal["a", "b"] = "a"
        numbers: int = Port(1, options=[1, 2])
        wired: list[Any] = Port(wire_only=True)
        written: str = Port("x", literal_only=True)
        when_wired: str = Port(required_when_wired=True)
        cases: list[dict[str, Any]] = Port(compiler_read=True)

    class Outputs:
        value: MustOverride
        told: dict[str, Any] = Port(description="what was told")


def test_the_class_as_a_whole() -> None:
    spec = spec_of(Everything)
    assert (spec.type, spec.label) == ("Everything", "All of it")
    assert spec.description == "Everything a class may say.\n\nWith a second paragraph."
    assert (spec.pure, spec.rerun, spec.hidden, spec.cast_ports, spec.created_outputs) == (
        True,
        False,
        True,
        True,
        True,
    )
    assert spec.created_inputs == metadata.CreatedInputs(STRING, required=False)
    assert spec.one_of_required == (("optional", "nullable"),)
    assert spec.rules[0].message == "say at least one case"
    assert spec_of(Everything) is spec


def test_inputs() -> None:
    spec = spec_of(Everything)
    found = {port.name: (str(port.type), port.required, port.default) for port in spec.inputs}
    assert found == {
        "value": ("T", True, MISSING),
        "required": ("String", True, MISSING),
        "optional": ("String", False, MISSING),
        "nullable": ("String | Null", True, MISSING),
        "with_default": ("Number", False, 3),
        "null_default": ("String | Null", False, None),
        "bounded": ("Number", False, 0.5),
        "whole": ("Number", True, MISSING),
        "choice": ("String", False, "a"),
        "numbers": ("Number", False, 1),
        "wired": ("List[T_Auto]", True, MISSING),
        "written": ("String", False, "x"),
        "when_wired": ("String", False, MISSING),
        "cases": ("List[JsonDict]", True, MISSING),
    }
    assert list(found) == [port.name for port in spec.inputs], "in the order they are written"


def test_what_ports_carry_beyond_their_types() -> None:
    spec = spec_of(Everything)

    def port(name: str) -> metadata.InputSpec:
        found = spec.input(name)
        assert found is not None
        return found

    assert port("bounded").domain == Domain(minimum=0, maximum=1)
    assert (port("bounded").description, port("bounded").label, port("bounded").widget) == (
        "from 0 to 1",
        "Bounded",
        "slider",
    )
    assert port("whole").domain == Domain(minimum=1, whole=True)
    assert port("choice").domain == Domain(options=("a", "b"))
    assert port("numbers").domain == Domain(options=(1, 2))
    assert port("required").domain is None
    assert (port("wired").accepts, port("written").accepts, port("required").accepts) == ("wire", "literal", "both")
    assert (port("cases").accepts, port("cases").compiler_read) == ("literal", True)
    assert port("when_wired").required_when_wired


def test_outputs() -> None:
    assert [(port.name, str(port.type), port.description) for port in spec_of(Everything).outputs] == [
        ("value", "MustOverride", None),
        ("told", "JsonDict", "what was told"),
    ]


def test_ports_from_a_list() -> None:
    config = spec_of(Everything).ports_from_config
    assert config is not None
    assert (config.field, config.match_input) == ("cases", "value")
    between, otherwise = config.kinds
    assert between.fields == (
        metadata.EntryField("min", "number", required=True),
        metadata.EntryField("inclusive", value_type=BOOLEAN),
    )
    assert between.adds_inputs == (metadata.PortTemplate("{key}_in", STRING, required=True),)
    assert between.adds_outputs == (metadata.PortTemplate("{key}", BOOLEAN),)
    assert otherwise.catch_all


def test_created_inputs_of_each_their_own_type_and_of_one_variable() -> None:
    class Each(_Base):
        """Each."""

        created_inputs = CreatedInputs()

    class Shared(_Base):
        """Shared."""

        created_inputs = CreatedInputs(T, required=False)

    assert spec_of(Each).created_inputs == metadata.CreatedInputs(None, required=True)
    assert spec_of(Shared).created_inputs == metadata.CreatedInputs(Variable("T"), required=False)


def test_ports_are_inherited() -> None:
    class _Provider(_Base):
        class Inputs:
            model: str

        class Outputs:
            provider: dict[str, Any]

    class Custom(_Provider):
        """Custom."""

        class Inputs(_Provider.Inputs):
            url: str

    spec = spec_of(Custom)
    assert [port.name for port in spec.inputs] == ["model", "url"]
    assert [port.name for port in spec.outputs] == ["provider"]
    assert spec.input("url") == metadata.InputSpec("url", STRING, required=True)


def test_a_node_may_have_no_ports() -> None:
    class Bare(_Base):
        """Bare."""

    assert (spec_of(Bare).inputs, spec_of(Bare).outputs) == ((), ())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ClaimSender", "Claim sender"),
        ("HttpRequest", "Http request"),
        ("LLMCall", "LLM call"),
        ("CallLLM", "Call LLM"),
        ("Not", "Not"),
        ("Get_Page2", "Get page2"),
    ],
)
def test_a_label_is_made_of_the_name(name: str, label: str) -> None:
    assert label_of(name) == label


def refused(node: type[Node]) -> NodeFileError:
    with pytest.raises(NodeFileError) as caught:
        spec_of(node)
    return caught.value


def test_a_class_outside_of_a_node_file_is_refused_with_its_place_too() -> None:
    class Undocumented(_Base):
        class Inputs:
            text: str

    error = refused(Undocumented)
    assert "Undocumented has no docstring" in error.message
    path, line, _ = error.message.split(":", 2)
    assert path.endswith("test_spec.py")
    with open(__file__, encoding="utf-8") as source:  # noqa: PTH123 - a line of this very file
        assert "class Undocumented" in source.read().splitlines()[int(line) - 1]


def test_types_that_stand_for_numbers() -> None:
    class Numbers(_Base):
        """Numbers."""

        class Inputs:
            a: int
            b: float
            c: int | float

    assert {port.type for port in spec_of(Numbers).inputs} == {NUMBER}


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("label", 5, "label is a text, not 5"),
        ("pure", "maybe", "pure is True or False, not 'maybe'"),
        ("rerun", None, "rerun is True or False, not None"),
        ("validate", [7], "validate is a list of Rule, not [7]"),
    ],
)
def test_a_flag_of_another_type_is_refused(flag: str, value: Any, told: str) -> None:
    flagged = type("Flagged", (_Base,), {"__doc__": "A node.", flag: value})
    assert told in str(refused(flagged))
