"""Node types as JSON."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeVar

from weft import (
    Condition,
    CreatedInputs,
    EntryField,
    EntryKind,
    ExecutionContext,
    Node,
    Port,
    PortsFromConfig,
    PortTemplate,
    Rule,
)
from weft.nodes.reading.describe import describe
from weft.nodes.reading.spec import spec_of
from weft.nodes.registry import Registry

T = TypeVar("T")


class Small(Node):
    """Say little."""

    class Outputs:
        value: str

    async def run(self, ctx: ExecutionContext) -> None: ...


class Large(Node):
    """Say much."""

    label = "Very large"
    pure = True
    rerun = False
    hidden = True
    cast_ports = True
    created_inputs = CreatedInputs(str, required=False)
    created_outputs = True
    one_of_required = (("a", "b"),)
    validate = (
        Rule(
            Condition("not", parts=(Condition("config_equals", "a", False),)),
            "never false",
            when=Condition("input_wired", "b"),
            severity="warning",
        ),
    )
    ports_from_config = PortsFromConfig(
        "cases",
        [
            EntryKind(
                "equals",
                "port",
                [EntryField("value", "value", required=True), EntryField("hint", type=str, label="Hint")],
                adds_outputs=[PortTemplate("{key}", bool)],
            ),
            EntryKind("otherwise", "port", catch_all=True),
        ],
        match_input="a",
    )

    class Inputs:
        a: T
        b: str | None = None
        share: float = Port(0.5, ge=0, le=1)
        count: int = Port(whole=True, required=False)
        method: Literal["GET", "POST"] = "GET"
        methods: list[Literal["GET"]] = Port(required=False)
        text: str = Port(widget="textarea", description="long", label="Text", wire_only=True)
        cases: list[dict[str, Any]] = Port(compiler_read=True)
        perhaps: str = Port(required_when_wired=True)

    async def run(self, ctx: ExecutionContext) -> None: ...


def test_what_is_not_said_is_left_out() -> None:
    assert describe(spec_of(Small)) == {
        "type": "Small",
        "label": "Small",
        "description": "Say little.",
        "inputs": [],
        "outputs": [{"name": "value", "type": "String"}],
    }


def test_everything_that_can_be_said() -> None:
    described = describe(spec_of(Large))
    assert described["inputs"] == [
        {"name": "a", "type": "T", "required": True},
        {"name": "b", "type": "String | Null", "default": None},
        {"name": "share", "type": "Number", "widget": {"kind": "number", "min": 0, "max": 1}, "default": 0.5},
        {"name": "count", "type": "Number", "widget": {"kind": "number", "step": 1}},
        {
            "name": "method",
            "type": "String",
            "widget": {"kind": "select", "options": ["GET", "POST"]},
            "default": "GET",
        },
        {"name": "methods", "type": "List[String]", "widget": {"kind": "multiselect", "options": ["GET"]}},
        {
            "name": "text",
            "type": "String",
            "required": True,
            "accepts": ["wire"],
            "widget": {"kind": "textarea"},
            "label": "Text",
            "description": "long",
        },
        {
            "name": "cases",
            "type": "List[JsonDict]",
            "required": True,
            "accepts": ["literal"],
            "compilerRead": True,
        },
        {"name": "perhaps", "type": "String", "requiredWhenWired": True},
    ]
    assert described["features"] == {
        "pure": True,
        "rerun": False,
        "hidden": True,
        "castPorts": True,
        "canAddInputPorts": True,
        "optionalCustomInputs": True,
        "customInputType": "String",
        "canAddOutputPorts": True,
        "oneOfRequired": [["a", "b"]],
        "portsFromConfig": {
            "field": "cases",
            "matchInput": "a",
            "specs": [
                {
                    "kind": "equals",
                    "keyField": "port",
                    "fields": [
                        {"key": "value", "shape": "value", "required": True},
                        {"key": "hint", "shape": "typed", "label": "Hint", "valueType": "String"},
                    ],
                    "addsOutputs": [{"nameTemplate": "{key}", "portType": "Boolean"}],
                },
                {"kind": "otherwise", "keyField": "port", "catchAll": True},
            ],
        },
    }
    assert described["validate"] == [
        {
            "when": {"question": "input_wired", "subject": "b"},
            "then": {
                "question": "not",
                "parts": [{"question": "config_equals", "subject": "a", "value": False}],
            },
            "message": "never false",
            "severity": "warning",
        }
    ]


def test_the_whole_catalog_can_be_told_as_json() -> None:
    registry = Registry.load()
    for name in registry.names():
        spec = registry.spec(name)
        assert spec is not None
        assert json.loads(json.dumps(describe(spec), allow_nan=False))["type"] == name
