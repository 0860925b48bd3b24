"""`weft.forms`: builders for the fields of a form, and the judging of its answers.

A field is a JSON object with a `kind` and a `key`, as in the list of a HumanQuery. An answer is a dict by key: a
text, one option, a list of options, or, to an `approve_reject`, `True` for approved and `False` for rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.nodes.answers import normalise as normalise
from weft.nodes.answers import problems as problems
from weft.nodes.answers import schema as schema
from weft.nodes.fields import Field as Field


def display(key: str, value: Any, *, label: str | None = None) -> Field:
    """Shows a value, and asks nothing."""
    return _field("display", key, label, value=_Shown(value))


def approve_reject(
    key: str, *, label: str | None = None, approve_label: str | None = None, reject_label: str | None = None
) -> Field:
    """Two buttons; the labels are what stands on them."""
    return _field("approve_reject", key, label, approveLabel=approve_label, rejectLabel=reject_label)


def select(key: str, options: Sequence[str], *, label: str | None = None) -> Field:
    """One of the options."""
    return _field("select", key, label, options=list(options))


def multi_select(key: str, options: Sequence[str], *, label: str | None = None) -> Field:
    """Any number of the options, none included."""
    return _field("multi_select", key, label, options=list(options))


def select_input(key: str, options: Sequence[str], *, label: str | None = None) -> Field:
    """As `select`; the name under which HumanQuery takes the options from a wire."""
    return _field("select_input", key, label, options=list(options))


def multi_select_input(key: str, options: Sequence[str], *, label: str | None = None) -> Field:
    """As `multi_select`; the name under which HumanQuery takes the options from a wire."""
    return _field("multi_select_input", key, label, options=list(options))


def text_input(key: str, *, label: str | None = None, placeholder: str | None = None) -> Field:
    """A text of one line."""
    return _field("text_input", key, label, placeholder=placeholder)


def textarea(key: str, *, label: str | None = None, placeholder: str | None = None) -> Field:
    """A text of many lines."""
    return _field("textarea", key, label, placeholder=placeholder)


def editable_text_input(key: str, text: str = "", *, label: str | None = None, placeholder: str | None = None) -> Field:
    """A text of one line that is there already. Without an answer it stays as it is."""
    return _field("editable_text_input", key, label, placeholder=placeholder, value=text)


def editable_textarea(key: str, text: str = "", *, label: str | None = None, placeholder: str | None = None) -> Field:
    """A text of many lines that is there already. Without an answer it stays as it is."""
    return _field("editable_textarea", key, label, placeholder=placeholder, value=text)


class _Shown(NamedTuple):
    """Keeps a null that is to be shown apart from a key that is not there."""

    value: Any


def _field(kind: str, key: str, label: str | None, **rest: Any) -> Field:
    given = {"label": label, **rest}
    field = {name: value for name, value in given.items() if value is not None}
    if isinstance(field.get("value"), _Shown):
        field["value"] = field["value"].value
    return {"kind": kind, "key": key, **field}
