"""The fields of a form: their kinds, and what a well-formed one is. `forms.py` makes them, `answers.py` judges what
comes back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from weft.errors import NodeError
from weft.lang.values import a_value

if TYPE_CHECKING:
    from weft.nodes.waits import Form

Field = dict[str, Any]
Asks = Literal["text", "verdict", "option", "options"]

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class FieldKind(NamedTuple):
    """`asks` is what kind of answer there is, None for a field that only shows something; `keys` are those beside
    `kind`, `key` and `label`, and `needs` the ones among them that must be there."""

    asks: Asks | None
    keys: tuple[str, ...]
    needs: tuple[str, ...] = ()


KINDS: Final = {
    "display": FieldKind(None, ("value",), ("value",)),
    "approve_reject": FieldKind("verdict", ("approveLabel", "rejectLabel")),
    "select": FieldKind("option", ("options",), ("options",)),
    "multi_select": FieldKind("options", ("options",), ("options",)),
    "select_input": FieldKind("option", ("options",), ("options",)),
    "multi_select_input": FieldKind("options", ("options",), ("options",)),
    "text_input": FieldKind("text", ("placeholder",)),
    "textarea": FieldKind("text", ("placeholder",)),
    "editable_text_input": FieldKind("text", ("placeholder", "value")),
    "editable_textarea": FieldKind("text", ("placeholder", "value")),
}


def check_fields(fields: Iterable[Mapping[str, Any]]) -> tuple[Field, ...]:
    """The fields as they are stored. Raises NodeError, naming the field, for one that could not be asked."""
    if isinstance(fields, Mapping | str):
        raise NodeError("the fields of a form are a list")
    checked: list[Field] = []
    for field in fields:
        reason = _wrong(field)
        if reason is None and any(each["key"] == field["key"] for each in checked):
            reason = "the form has a field of that key already"
        if reason is not None:
            key = field.get("key") if isinstance(field, Mapping) else None
            raise NodeError(f"the field `{key}` of a form: {reason}" if key else f"a field of a form: {reason}")
        checked.append(dict(field))
    return tuple(checked)


def _wrong(field: Any) -> str | None:
    if not isinstance(field, Mapping):
        return f"it is an object with a kind and a key, not {a_value(field)}"
    kind = KINDS.get(field.get("kind", ""))
    if kind is None:
        return f"there is no kind {field.get('kind')!r}; there are {', '.join(KINDS)}"
    if not isinstance(field.get("key"), str) or not _KEY.fullmatch(field["key"]):
        return "its key is letters, digits and `_`, with no digit first"
    for name, value in field.items():
        if name not in ("kind", "key", "label", *kind.keys):
            return f"a field of kind {field['kind']} has no `{name}`"
        if name != "options" and (name != "value" or kind.asks) and not isinstance(value, str):
            return f"its {name} is a text, not {a_value(value)}"
    missing = next((name for name in kind.needs if name not in field), None)
    if missing is not None:
        return f"a field of kind {field['kind']} needs `{missing}`"
    return _wrong_options(field["kind"], field["options"]) if "options" in field else None


def _wrong_options(kind: str, options: Any) -> str | None:
    if not isinstance(options, list) or not all(isinstance(each, str) for each in options):
        return "its options are a list of texts"
    if not options and kind in ("select", "multi_select", "select_input"):
        return "there is nothing to choose from: its options are empty"
    twice = next((each for at, each in enumerate(options) if each in options[:at]), None)
    return None if twice is None else f"the option “{twice}” is there twice"


def fields_of(form: Form | Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The fields of a form, or of one as it is stored."""
    fields: Sequence[Mapping[str, Any]] = form["fields"] if isinstance(form, Mapping) else form.fields
    return fields


def asking(form: Form | Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields that ask something, by key."""
    return {field["key"]: field for field in fields_of(form) if KINDS[field["kind"]].asks}
