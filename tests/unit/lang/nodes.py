"""A small catalog as data, for the tests of the compiler: the shapes of the real nodes, without their code."""

from __future__ import annotations

from collections.abc import Iterable

from weft.lang.graph import Domain
from weft.lang.metadata import (
    Condition,
    CreatedInputs,
    EntryField,
    EntryKind,
    InputSpec,
    NodeSpec,
    OutputSpec,
    PortsFromConfig,
    PortTemplate,
    Rule,
)
from weft.lang.types import AUTO, BOOLEAN, MUST_OVERRIDE, STRING, Variable, parse_type

T = Variable("T")


def spec(
    type_: str, inputs: Iterable[InputSpec] = (), outputs: Iterable[tuple[str, object]] = (), **rest: object
) -> NodeSpec:
    ports = tuple(OutputSpec(name, parse_type(str(port))) for name, port in outputs)
    return NodeSpec(type_, type_, f"{type_} for tests.", tuple(inputs), ports, **rest)  # type: ignore[arg-type]


def port(name: str, type_: str, required: bool = False, **rest: object) -> InputSpec:
    return InputSpec(name, parse_type(type_), required, **rest)  # type: ignore[arg-type]


def case(kind: str, *fields: EntryField, catch_all: bool = False) -> EntryKind:
    return EntryKind(kind, "port", fields, catch_all, adds_outputs=(PortTemplate("{key}", BOOLEAN),))


def field(key: str, shape: str, **rest: object) -> EntryField:
    return EntryField(key, shape, required=True, **rest)  # type: ignore[arg-type]


CASES = PortsFromConfig(
    "cases",
    (
        case("equals", field("value", "value")),
        case("in", field("value", "valueList", non_empty=True)),
        case("contains", field("value", "element")),
        case("matches", field("value", "regex")),
        case("gt", field("value", "number")),
        case("gte", field("value", "number")),
        case("lt", field("value", "number")),
        case("lte", field("value", "number")),
        case(
            "between",
            field("min", "number"),
            field("max", "number"),
            EntryField("inclusive", "typed", value_type=BOOLEAN),
        ),
        case("otherwise", catch_all=True),
    ),
    match_input="value",
)

SHARED = CreatedInputs(T, required=False)

METHODS = Domain(options=("GET", "POST", "PUT", "PATCH", "DELETE"))

SPECS = (
    spec("Text", [port("value", "String", True)], [("value", "String")]),
    spec("Debug", [port("data", "T", True)]),
    spec(
        "ExecPython",
        [port("code", "String", True, accepts="literal")],
        created_inputs=CreatedInputs(),
        created_outputs=True,
    ),
    spec("Cast", [port("value", "T", True, accepts="wire")], [("value", MUST_OVERRIDE)], cast_ports=True, pure=True),
    spec("Format", [port("template", "String", True)], [("text", "String")], created_inputs=CreatedInputs()),
    spec("JsonObject", [], [("value", "JsonDict")], created_inputs=CreatedInputs(), pure=True),
    spec("List", [], [("value", "List[T]")], created_inputs=CreatedInputs(T), pure=True),
    spec(
        "Switch",
        [port("value", "T", True), port("cases", "List[JsonDict]", True, compiler_read=True)],
        ports_from_config=CASES,
        rules=(
            Rule(
                Condition("config_nonempty", "cases"),
                "write at least one case",
                when=Condition("config_present", "cases"),
            ),
        ),
    ),
    spec("FirstInOrder", [], [("value", "T")], created_inputs=SHARED),
    spec("All", [], [("yes", "Boolean")], created_inputs=CreatedInputs(AUTO)),
    spec("Not", [port("value", "Boolean", True)], [("value", "Boolean")]),
    spec(
        "HttpRequest",
        [
            port("url", "String", True),
            port("body", "JsonDict"),
            port("headers", "Dict[String, String]"),
            port("method", "String", default="GET", domain=METHODS),
        ],
        [("status", "Number"), ("body", "JsonDict | String"), ("ok", "Boolean")],
    ),
    spec("TagRun", [port("tags", "List[String]")], [("done", "Boolean")], created_inputs=CreatedInputs(STRING)),
    spec(
        "StopTagged",
        [port("tags", "List[String]"), port("includeSelf", "Boolean", default=False)],
        [("done", "Boolean")],
        created_inputs=CreatedInputs(STRING),
    ),
    # Of no catalog: what the others do not show.
    spec(
        "Pick",
        [
            port("count", "Number", True, domain=Domain(minimum=1, maximum=10, whole=True)),
            port("ratio", "Number", domain=Domain(minimum=0, maximum=1)),
            port("sizes", "List[String]", domain=Domain(options=("small", "large"))),
            port("first", "String"),
            port("second", "String"),
            port("later", "String", required_when_wired=True),
            port("either", "String | Null"),
            port("pair", "Dict[String, T]"),
            port("same", "T"),
            port("maybe", "T1 | Null"),
        ],
        [("value", "T"), ("each", "T_Auto"), ("maybe", "T1")],
        one_of_required=(("first", "second"),),
    ),
    spec(
        "Judge",
        [port("mode", "String"), port("note", "String"), port("data", "T")],
        [("yes", "Boolean"), ("no", "Boolean")],
        rules=(
            Rule(
                Condition("any", parts=(Condition("input_wired", "data"), Condition("config_present", "note"))),
                "give it data or a note",
            ),
            Rule(
                Condition("input_satisfied", "note"),
                "a strict judge needs a note",
                when=Condition("config_equals", "mode", "strict"),
            ),
            Rule(
                Condition("not", parts=(Condition("output_wired", "no"),)),
                "nobody should use `no`",
                severity="warning",
            ),
        ),
    ),
    spec(
        "Form",
        [port("fields", "List[JsonDict]", True, compiler_read=True)],
        ports_from_config=PortsFromConfig(
            "fields",
            (
                EntryKind("display", "key", (EntryField("label"),), adds_inputs=(PortTemplate("{key}", AUTO),)),
                EntryKind(
                    "approve",
                    "key",
                    (EntryField("label", value_type=STRING),),
                    adds_outputs=(
                        PortTemplate("{key}_approved", BOOLEAN),
                        PortTemplate("{key}_rejected", BOOLEAN),
                    ),
                ),
                EntryKind(
                    "edit",
                    "key",
                    adds_inputs=(PortTemplate("{key}", STRING, required=True),),
                    adds_outputs=(PortTemplate("{key}", STRING),),
                ),
            ),
        ),
    ),
)


class Catalog:
    """These node types, as the compiler asks for them."""

    def __init__(self, specs: Iterable[NodeSpec] = SPECS) -> None:
        self._specs = {each.type: each for each in specs}

    def spec(self, type_name: str) -> NodeSpec | None:
        return self._specs.get(type_name)

    def names(self) -> Iterable[str]:
        return self._specs


CATALOG = Catalog()


class FakeFiles(dict[str, str]):
    """Files of a project, by path from its root."""

    def read(self, path: str) -> str:
        if path.startswith(("/", "..")):
            raise ValueError("it is outside the project")
        if path not in self:
            raise FileNotFoundError(2, "No such file or directory")
        return self[path]
