"""A node type as JSON, in the metadata form of the language: what `weft describe-nodes --json` prints.

What is not said has its default: an input is optional, a feature is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.lang.graph import MISSING
from weft.lang.metadata import (
    Condition,
    EntryField,
    EntryKind,
    InputSpec,
    NodeSpec,
    OutputSpec,
    PortsFromConfig,
    PortTemplate,
    Retry,
    Rule,
)
from weft.lang.types import STRING, ListOf

Json = dict[str, Any]

_ACCEPTS = {"wire": ["wire"], "literal": ["literal"]}


def describe(spec: NodeSpec) -> Json:
    """The metadata of one node type."""
    return _without_defaults(
        {
            "type": spec.type,
            "label": spec.label,
            "description": spec.description,
            "inputs": [_input(port) for port in spec.inputs],
            "outputs": [_output(port) for port in spec.outputs],
            "features": _features(spec) or None,
            "validate": [_rule(rule) for rule in spec.rules] or None,
        }
    )


def _input(port: InputSpec) -> Json:
    described = _without_defaults(
        {
            "name": port.name,
            "type": str(port.type),
            "required": port.required or None,
            "requiredWhenWired": port.required_when_wired or None,
            "accepts": _ACCEPTS.get(port.accepts),
            "compilerRead": port.compiler_read or None,
            "widget": _widget(port),
            "label": port.label,
            "description": port.description,
        }
    )
    if port.default is not MISSING:
        described["default"] = port.default
    return described


def _output(port: OutputSpec) -> Json:
    return _without_defaults(
        {"name": port.name, "type": str(port.type), "label": port.label, "description": port.description}
    )


def _widget(port: InputSpec) -> Json | None:
    """How a person fills the port, and the rules that go with it."""
    domain = port.domain
    if domain is None:
        return None if port.widget is None else {"kind": port.widget}
    if domain.options is not None:
        kind = "multiselect" if isinstance(port.type, ListOf) else "select"
        return {"kind": port.widget or kind, "options": list(domain.options)}
    kind = "text" if port.type == STRING else "number"
    return _without_defaults(
        {
            "kind": port.widget or kind,
            "min": domain.minimum,
            "max": domain.maximum,
            "step": 1 if domain.whole else None,
        }
    )


def _features(spec: NodeSpec) -> Json:
    created = spec.created_inputs
    features: Json = {
        "pure": spec.pure or None,
        "rerun": None if spec.rerun else False,
        "retry": None if spec.retry is None else _retry(spec.retry),
        "hidden": spec.hidden or None,
        "castPorts": spec.cast_ports or None,
        "canAddInputPorts": True if created is not None else None,
        "optionalCustomInputs": True if created is not None and not created.required else None,
        "customInputType": str(created.type) if created is not None and created.type is not None else None,
        "canAddOutputPorts": spec.created_outputs or None,
        "oneOfRequired": [list(group) for group in spec.one_of_required] or None,
        "portsFromConfig": None if spec.ports_from_config is None else _config(spec.ports_from_config),
    }
    return _without_defaults(features)


def _retry(retry: Retry) -> Json:
    return {
        "attempts": retry.attempts,
        "firstSecs": retry.first.total_seconds(),
        "maxSecs": retry.max.total_seconds(),
    }


def _config(config: PortsFromConfig) -> Json:
    return _without_defaults(
        {
            "field": config.field,
            "matchInput": config.match_input,
            "specs": [_kind(kind) for kind in config.kinds],
        }
    )


def _kind(kind: EntryKind) -> Json:
    return _without_defaults(
        {
            "kind": kind.kind,
            "keyField": kind.key_field,
            "fields": [_entry_field(field) for field in kind.fields] or None,
            "catchAll": kind.catch_all or None,
            "addsInputs": [_template(each) for each in kind.adds_inputs] or None,
            "addsOutputs": [_template(each) for each in kind.adds_outputs] or None,
        }
    )


def _entry_field(field: EntryField) -> Json:
    return _without_defaults(
        {
            "key": field.key,
            "shape": field.shape,
            "label": field.label,
            "required": field.required or None,
            "nonEmpty": field.non_empty or None,
            "valueType": None if field.value_type is None else str(field.value_type),
        }
    )


def _template(template: PortTemplate) -> Json:
    return _without_defaults(
        {
            "nameTemplate": template.name_template,
            "portType": str(template.type),
            "required": template.required or None,
        }
    )


def _rule(rule: Rule) -> Json:
    return _without_defaults(
        {
            "when": None if rule.when is None else _condition(rule.when),
            "then": _condition(rule.then),
            "message": rule.message,
            "severity": rule.severity,
        }
    )


def _condition(condition: Condition) -> Json:
    described = _without_defaults(
        {
            "question": condition.question,
            "subject": condition.subject,
            "parts": [_condition(part) for part in condition.parts] or None,
        }
    )
    if condition.value is not None:
        described["value"] = condition.value
    return described


def _without_defaults(described: Mapping[str, Any]) -> Json:
    return {key: value for key, value in described.items() if value is not None}
