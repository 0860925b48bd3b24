"""The fields of a form as a program writes them: the kinds of their list, and what they make of inputs and answers."""

from collections.abc import Sequence
from typing import Any

from weft import EntryField, EntryKind, ExecutionContext, PortTemplate

_LABEL = EntryField("label", type=str)
_PLACEHOLDER = EntryField("placeholder", type=str)
_OPTIONS = EntryField("options", type=list[str], required=True, non_empty=True)
_TEXT = PortTemplate("{key}", str)
_TEXTS = PortTemplate("{key}", list[str])
_INTO = {
    "display": "value",
    "select_input": "options",
    "multi_select_input": "options",
    "editable_text_input": "value",
    "editable_textarea": "value",
}
"""Which key of a field takes what comes on its input."""

FIELD_KINDS = (
    EntryKind("display", fields=(_LABEL,), adds_inputs=(PortTemplate("{key}", Any),)),
    EntryKind(
        "approve_reject",
        fields=(_LABEL, EntryField("approveLabel", type=str), EntryField("rejectLabel", type=str)),
        adds_outputs=(PortTemplate("{key}_approved", bool), PortTemplate("{key}_rejected", bool)),
    ),
    EntryKind("select", fields=(_OPTIONS, _LABEL), adds_outputs=(_TEXT,)),
    EntryKind("multi_select", fields=(_OPTIONS, _LABEL), adds_outputs=(_TEXTS,)),
    EntryKind("select_input", fields=(_LABEL,), adds_inputs=(_TEXTS,), adds_outputs=(_TEXT,)),
    EntryKind("multi_select_input", fields=(_LABEL,), adds_inputs=(_TEXTS,), adds_outputs=(_TEXTS,)),
    EntryKind("text_input", fields=(_LABEL, _PLACEHOLDER), adds_outputs=(_TEXT,)),
    EntryKind("textarea", fields=(_LABEL, _PLACEHOLDER), adds_outputs=(_TEXT,)),
    EntryKind("editable_text_input", fields=(_LABEL, _PLACEHOLDER), adds_inputs=(_TEXT,), adds_outputs=(_TEXT,)),
    EntryKind("editable_textarea", fields=(_LABEL, _PLACEHOLDER), adds_inputs=(_TEXT,), adds_outputs=(_TEXT,)),
)


def form_fields(ctx: ExecutionContext, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with what came on their inputs.

    Where nothing came, there is nothing to show or to choose from, and the field is left out; a text to edit is
    empty then.
    """
    fields = []
    for entry in entries:
        field = {name: value for name, value in entry.items() if value is not None}
        into = _INTO.get(field["kind"])
        if into is not None and field["key"] in ctx.inputs:
            field[into] = ctx.inputs.raw(field["key"])
        elif into is not None and field["kind"].startswith("editable"):
            field[into] = ""
        elif into is not None:
            continue
        fields.append(field)
    return fields


def port_values(fields: Sequence[dict[str, Any]], answers: dict[str, Any]) -> dict[str, Any]:
    """What each port carries for the answers. Of approve and reject one says true, and the other closes."""
    values: dict[str, Any] = {}
    for field in fields:
        key = field["key"]
        if field["kind"] == "approve_reject":
            values[f"{key}_approved" if answers[key] else f"{key}_rejected"] = True
        elif key in answers:
            values[key] = answers[key]
    return values
