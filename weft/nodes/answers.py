"""What is a right answer to a form: reading what people and programs give, and saying what is wrong with it.

Not here: the fields themselves (`fields.py`), and what an answer does (the store).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.lang.diagnostics import nearest
from weft.lang.values import a_value, unstorable
from weft.nodes.fields import KINDS, asking, fields_of

if TYPE_CHECKING:
    from weft.nodes.waits import Form

_APPROVED: Final = {"approve", "approved", "yes", "y", "true"}
_REJECTED: Final = {"reject", "rejected", "no", "n", "false"}
_BOTH: Final = "both"


def normalise(form: Form | Mapping[str, Any], answers: Mapping[str, Any], *, complete: bool = False) -> dict[str, Any]:
    """Answers as `problems` wants them, from ones as people and programs give them.

    A list of one stands for its item where one is asked, and a text for its parts between commas where several
    are; options are found whatever their case; approve and reject go by these words, by yes and no, by the labels
    of the buttons and by the names of their ports (`ok_approved=true`); line ends become `\\n`. An editable text
    without an answer is what it was. `complete` says that every field was shown, as in an HTML page, which sends
    nothing for boxes without a tick: then none is chosen. What cannot be read is left as it is for `problems`.
    """
    result = dict(answers)
    for key, field in asking(form).items():
        asks = KINDS[field["kind"]].asks
        if asks == "verdict":
            _take_ports(result, key)
        if key not in result:
            if "value" in field:
                result[key] = field["value"]
            elif complete and asks == "options":
                result[key] = []
            continue
        result[key] = _READERS[str(asks)](field, result[key])
    return result


def _take_ports(answers: dict[str, Any], key: str) -> None:
    """An answer that is given by the names of the two ports of an approve_reject."""
    said = []
    for port, verdict in ((f"{key}_approved", True), (f"{key}_rejected", False)):
        if port in answers:
            value = _verdict({}, answers.pop(port))
            said.append(verdict if value is True else not verdict if value is False else value)
    if said:
        said += [_verdict({}, answers[key])] if key in answers else []
        answers[key] = said[0] if all(each is said[0] for each in said) else _BOTH


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(field: Mapping[str, Any], value: Any) -> Any:
    value = _one(value)
    return value.replace("\r\n", "\n").replace("\r", "\n") if isinstance(value, str) else value


def _verdict(field: Mapping[str, Any], value: Any) -> Any:
    value = _one(value)
    if isinstance(value, list):
        said = {_verdict(field, each) for each in value if isinstance(each, str | bool)}
        return said.pop() if len(said) == 1 else _BOTH
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if word in _APPROVED or word == str(field.get("approveLabel", "")).strip().lower() != "":
        return True
    if word in _REJECTED or word == str(field.get("rejectLabel", "")).strip().lower() != "":
        return False
    return value


def _option(field: Mapping[str, Any], value: Any) -> Any:
    value = _one(value)
    if not isinstance(value, str) or value in field["options"]:
        return value
    alike = [each for each in field["options"] if each.strip().lower() == value.strip().lower()]
    return alike[0] if len(alike) == 1 else value


def _options(field: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], str) and _option(field, value[0]) not in field["options"]:
        value = [each.strip() for each in value[0].split(",") if each.strip()]
    return [_option(field, each) for each in value]


_READERS: Final[dict[str, Callable[[Mapping[str, Any], Any], Any]]] = {
    "text": _text,
    "verdict": _verdict,
    "option": _option,
    "options": _options,
}


def problems(form: Form | Mapping[str, Any], answers: Any) -> dict[str, str]:
    """What is wrong with the answers, by key, in words for whoever gave them; nothing wrong is an empty dict.

    What concerns the answers as a whole stands under the key "".
    """
    if not isinstance(answers, Mapping):
        return {"": f"the answers are an object with one entry a field, not {a_value(answers)}"}
    fields = asking(form)
    found: dict[str, str] = {}
    for key, field in fields.items():
        reason = _unanswered(field) if key not in answers else _misanswered(field, answers[key])
        if reason is not None:
            found[key] = reason
    shown = {field["key"] for field in fields_of(form)} - fields.keys()
    for key in answers:
        if key in shown:
            found[key] = "this field only shows something, and takes no answer"
        elif key not in fields:
            found[str(key)] = _unknown(str(key), fields)
    return found


def _unknown(key: str, fields: Iterable[str]) -> str:
    likely = nearest(key, fields)
    asked = ", ".join(f"`{each}`" for each in fields)
    if likely is not None:
        return f"the form has no field `{key}`; did you mean `{likely}`?"
    return f"the form has no field `{key}`; it asks for {asked}" if asked else "the form asks for nothing"


def _unanswered(field: Mapping[str, Any]) -> str:
    match KINDS[field["kind"]].asks:
        case "text":
            return "write a text; it may be empty"
        case "verdict":
            return "approve or reject"
        case "option":
            return f"choose one of {_listed(field['options'])}"
        case _:
            return f"choose any of {_listed(field['options'])}, or none"


def _misanswered(field: Mapping[str, Any], answer: Any) -> str | None:
    match KINDS[field["kind"]].asks:
        case "text":
            if not isinstance(answer, str):
                return f"this is {a_value(answer)}; write one text"
            reason = unstorable(answer)
            return None if reason is None else f"the text cannot be kept: {reason}"
        case "verdict":
            if answer == _BOTH:
                return "approve or reject, not both"
            return None if isinstance(answer, bool) else f"{_quoted(answer)} is neither approve nor reject"
        case "option":
            return _no_option(field, answer)
        case _:
            return _no_options(field, answer)


def _no_option(field: Mapping[str, Any], answer: Any) -> str | None:
    if isinstance(answer, list):
        return f"choose one of {_listed(field['options'])}, not {len(answer)}"
    if isinstance(answer, str) and answer in field["options"]:
        return None
    return f"{_quoted(answer)} is not an option; choose one of {_listed(field['options'])}"


def _no_options(field: Mapping[str, Any], answer: Any) -> str | None:
    if not isinstance(answer, list):
        return f"this is {a_value(answer)}; give a list of options, out of {_listed(field['options'])}"
    for at, each in enumerate(answer):
        if not isinstance(each, str) or each not in field["options"]:
            return f"{_quoted(each)} is not an option; the options are {_listed(field['options'])}"
        if each in answer[:at]:
            return f"{_quoted(each)} is chosen twice"
    return None


def _quoted(answer: Any) -> str:
    return f"“{answer}”" if isinstance(answer, str) and len(answer) <= 80 else a_value(answer)


def _listed(options: Sequence[str]) -> str:
    named = ", ".join(f"“{each}”" for each in options[:20])
    return named if len(options) <= 20 else f"{named} and {len(options) - 20} more"


def schema(form: Form | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of the answers that `problems` takes."""
    properties: dict[str, Any] = {}
    for key, field in asking(form).items():
        match KINDS[field["kind"]].asks:
            case "text":
                properties[key] = {"type": "string"}
            case "verdict":
                properties[key] = {"type": "boolean"}
            case "option":
                properties[key] = {"enum": list(field["options"])}
            case _:
                items = {"enum": list(field["options"])} if field["options"] else False
                properties[key] = {"type": "array", "items": items, "uniqueItems": True}
        if "label" in field:
            properties[key]["title"] = field["label"]
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
