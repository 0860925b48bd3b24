"""The fields of a form, asked one after the other on the terminal, each until its answer is right.

Not here: how a line is read (`editor.py`), what a right answer is (`weft.service.waits`), and when a form is asked
(`weft.cli.following`, `weft answer`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.cli.asking.editor import Editor, EndOfInput
from weft.cli.lines import compact, one_line
from weft.cli.output import note
from weft.errors import AnswerRefused
from weft.nodes.fields import KINDS
from weft.service.waits import OpenForm, checked

_MANY_LINES = frozenset({"textarea", "editable_textarea"})


class LeftOpen(Exception):
    """The person did not answer: Ctrl-D."""


async def ask(form: OpenForm, editor: Editor) -> dict[str, Any]:
    """Show the form and ask its fields. Raises LeftOpen."""
    note("")
    note(one_line(form.title), "bold")
    if form.description:
        note(_text(form.description))
    note("  (Ctrl-D leaves it open)", "dim")
    answers: dict[str, Any] = {}
    try:
        for field in form.fields:
            if KINDS[field["kind"]].asks is None:
                note(f"  {_label(field)}:")
                note(_text(field["value"] if isinstance(field["value"], str) else compact(field["value"]), 4))
            else:
                answers[field["key"]] = await _until_right(field, editor)
        if not answers:
            note("  Enter says that you have seen it")
            await editor.line()
    except EndOfInput:
        raise LeftOpen from None
    return answers


async def _until_right(field: Mapping[str, Any], editor: Editor) -> Any:
    while True:
        given = await _READERS[str(KINDS[field["kind"]].asks)](field, editor)
        try:
            return checked({"title": "", "fields": [field]}, {field["key"]: given})[field["key"]]
        except AnswerRefused as error:
            note(f"  {error.fields.get(field['key']) or error.message}", "yellow")


async def _read_text(field: Mapping[str, Any], editor: Editor) -> str:
    placeholder = f", such as {one_line(field['placeholder'])}" if field.get("placeholder") else ""
    if field["kind"] not in _MANY_LINES:
        note(f"  {_label(field)}{placeholder}")
        return await editor.line(field.get("value", ""))
    note(f"  {_label(field)}{placeholder} (many lines; Ctrl-D ends it)")
    given = field["value"].split("\n") if field.get("value") else []
    lines: list[str] = []
    while True:
        try:
            lines.append(await editor.line(given.pop(0) if given else ""))
        except EndOfInput as end:
            for line in given:
                note(f"  {one_line(line)}", "dim")
            return "\n".join([*lines, *([end.text] if end.text or given else []), *given])


async def _read_verdict(field: Mapping[str, Any], editor: Editor) -> str:
    labels = [one_line(field.get("approveLabel") or "approve"), one_line(field.get("rejectLabel") or "reject")]
    note(f"  {_label(field)}: {labels[0]} or {labels[1]}?")
    return _completed(await editor.line(), labels)


async def _read_option(field: Mapping[str, Any], editor: Editor) -> str:
    numbered = _show_options(field, "one")
    return numbered(await editor.line())


async def _read_options(field: Mapping[str, Any], editor: Editor) -> list[str]:
    numbered = _show_options(field, "any, with commas between")
    given = await editor.line()
    if given.strip() in field["options"]:
        return [given.strip()]
    return [numbered(each.strip()) for each in given.split(",") if each.strip()]


_READERS = {"text": _read_text, "verdict": _read_verdict, "option": _read_option, "options": _read_options}


def _show_options(field: Mapping[str, Any], how: str) -> Callable[[str], str]:
    """Lists the options; what turns a number of the list, or the beginning of an option, into the option."""
    options: Sequence[str] = field["options"]
    # Options that are numbers themselves are not numbered: nobody could tell which one is meant.
    numbers = not any(each.strip().isdigit() for each in options)
    note(f"  {_label(field)}: choose {how}")
    for at, option in enumerate(options, start=1):
        note(f"    {f'{at}) ' if numbers else '- '}{one_line(option)}")

    def chosen(given: str) -> str:
        given = given.strip()
        if numbers and given.isdigit() and 1 <= int(given) <= len(options):
            return options[int(given) - 1]
        return _completed(given, options)

    return chosen


def _completed(given: str, words: Sequence[str]) -> str:
    """The one word that begins so, if there is just one; else what was given."""
    beginning = given.strip().lower()
    found = [word for word in words if beginning and word.lower().startswith(beginning)]
    return found[0] if len(found) == 1 else given


def _label(field: Mapping[str, Any]) -> str:
    return one_line(field.get("label") or field["key"])


def _text(text: str, indent: int = 2) -> str:
    return "\n".join(" " * indent + one_line(line) for line in text.split("\n"))
