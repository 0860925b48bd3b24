"""Fields of forms, and what is a right answer to them."""

from __future__ import annotations

from typing import Any

import pytest

from weft import Form, NodeError, forms

FIELDS = [
    forms.display("draft", {"to": "Ann"}, label="Draft"),
    forms.approve_reject("ok", approve_label="Send", reject_label="Bin"),
    forms.select("size", ["small", "Large"]),
    forms.multi_select("extras", ["milk", "sugar", "salt, pepper"]),
    forms.text_input("note"),
    forms.editable_textarea("text", "old"),
]
FORM = Form("Choose", FIELDS)
RIGHT: dict[str, Any] = {"ok": True, "size": "small", "extras": [], "note": "", "text": "new"}


def test_builders_make_what_a_program_would_write() -> None:
    assert [
        forms.display("a", None),
        forms.approve_reject("b", label="Well?"),
        forms.select_input("c", ["x"]),
        forms.multi_select_input("d", []),
        forms.textarea("e", placeholder="…"),
        forms.editable_text_input("f"),
    ] == [
        {"kind": "display", "key": "a", "value": None},
        {"kind": "approve_reject", "key": "b", "label": "Well?"},
        {"kind": "select_input", "key": "c", "options": ["x"]},
        {"kind": "multi_select_input", "key": "d", "options": []},
        {"kind": "textarea", "key": "e", "placeholder": "…"},
        {"kind": "editable_text_input", "key": "f", "value": ""},
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("text", "are a list"),
        ({"kind": "text_input", "key": "a"}, "are a list"),
        (["a"], "not a String"),
        ([{"key": "a"}], "no kind None"),
        ([{"kind": "display_image", "key": "a"}], "no kind 'display_image'; there are display, approve_reject"),
        ([{"kind": "text_input"}], "its key is letters"),
        ([{"kind": "text_input", "key": "1a"}], "its key is letters"),
        ([forms.text_input("a"), forms.select("a", ["x"])], "`a` of a form: the form has a field of that key already"),
        ([{"kind": "text_input", "key": "a", "options": []}], "has no `options`"),
        ([{"kind": "text_input", "key": "a", "label": 3}], "its label is a text, not a Number"),
        ([{"kind": "select", "key": "a"}], "needs `options`"),
        ([{"kind": "display", "key": "a"}], "needs `value`"),
        ([forms.select("a", [])], "nothing to choose from"),
        ([forms.select("a", ["x", "y", "x"])], "“x” is there twice"),
        ([{"kind": "select", "key": "a", "options": "xy"}], "a list of texts"),
        ([{"kind": "editable_textarea", "key": "a", "value": None}], "its value is a text, not null"),
    ],
)
def test_a_field_that_could_not_be_asked_is_refused(fields: Any, words: str) -> None:
    with pytest.raises(NodeError) as refused:
        Form("Title", fields)
    assert words in refused.value.message


@pytest.mark.parametrize("title", ["", "  ", None])
def test_a_form_has_a_title(title: Any) -> None:
    with pytest.raises(NodeError, match="has a title"):
        Form(title)


def test_a_form_keeps_its_fields_whatever_becomes_of_the_list() -> None:
    fields = [forms.text_input("a")]
    form = Form("Title", fields)
    fields[0]["key"] = "b"
    assert form.spec() == {"title": "Title", "fields": [{"kind": "text_input", "key": "a"}]}


def test_right_answers_have_no_problems_for_a_form_and_for_its_stored_shape() -> None:
    assert forms.problems(FORM, RIGHT) == {}
    assert forms.problems(FORM.spec(), RIGHT) == {}
    assert forms.problems(FORM, {**RIGHT, "ok": False, "extras": ["salt, pepper", "milk"]}) == {}


@pytest.mark.parametrize(
    ("key", "answer", "words"),
    [
        ("ok", "maybe", "“maybe” is neither approve nor reject"),
        ("ok", None, "null is neither"),
        ("ok", 1, "a Number is neither"),
        ("size", "medium", "“medium” is not an option; choose one of “small”, “Large”"),
        ("size", "large", "“large” is not an option"),
        ("size", None, "null is not an option"),
        ("size", ["small", "Large"], "choose one of “small”, “Large”, not 2"),
        ("size", True, "a Boolean is not an option"),
        ("extras", "milk", "give a list of options, out of “milk”, “sugar”, “salt, pepper”"),
        ("extras", ["milk", "milk"], "“milk” is chosen twice"),
        ("extras", ["milk", "tea"], "“tea” is not an option"),
        ("extras", [["milk"]], "a List is not an option"),
        ("note", 3, "this is a Number; write one text"),
        ("note", None, "this is null; write one text"),
        ("note", "a\0b", "cannot be kept"),
        ("draft", "x", "only shows something"),
        ("notes", "x", "no field `notes`; did you mean `note`?"),
        ("entirely", "x", "it asks for `ok`, `size`, `extras`, `note`, `text`"),
    ],
)
def test_a_wrong_answer_is_told_in_words_beside_its_field(key: str, answer: Any, words: str) -> None:
    found = forms.problems(FORM, {**RIGHT, key: answer})
    assert list(found) == [key]
    assert words in found[key]


@pytest.mark.parametrize(
    ("key", "words"),
    [("ok", "approve or reject"), ("size", "choose one of"), ("extras", "or none"), ("note", "write a text")],
)
def test_a_missing_answer_says_what_to_do(key: str, words: str) -> None:
    found = forms.problems(FORM, {name: answer for name, answer in RIGHT.items() if name != key})
    assert list(found) == [key]
    assert words in found[key]


@pytest.mark.parametrize("answers", [None, [], "ok", 3])
def test_answers_that_are_no_object_are_refused_as_a_whole(answers: Any) -> None:
    assert list(forms.problems(FORM, answers)) == [""]


def test_a_form_that_asks_nothing_takes_no_answers() -> None:
    form = Form("Look", [forms.display("a", 1)])
    assert forms.problems(form, {}) == {}
    assert forms.problems(form, {"b": 1}) == {"b": "the form asks for nothing"}


def test_many_options_are_not_all_listed() -> None:
    form = Form("Many", [forms.select("a", [str(number) for number in range(50)])])
    assert "and 30 more" in forms.problems(form, {"a": "x"})["a"]


# --- what people type -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "verdict"),
    [
        ("approve", True),
        ("Yes", True),
        (" SEND ", True),
        (["true"], True),
        ("reject", False),
        ("bin", False),
        ("n", False),
        (False, False),
        ("maybe", "maybe"),
        ("", ""),
    ],
)
def test_a_verdict_goes_by_many_words(typed: Any, verdict: Any) -> None:
    assert forms.normalise(FORM, {**RIGHT, "ok": typed})["ok"] is verdict or typed == verdict


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ({"ok_approved": True}, True),
        ({"ok_approved": "true"}, True),
        ({"ok_approved": "false"}, False),
        ({"ok_rejected": True}, False),
        ({"ok_approved": True, "ok_rejected": False}, True),
        ({"ok": "yes", "ok_approved": True}, True),
    ],
)
def test_a_verdict_may_be_given_by_the_names_of_its_ports(answers: dict[str, Any], verdict: bool) -> None:
    rest = {key: answer for key, answer in RIGHT.items() if key != "ok"}
    read = forms.normalise(FORM, {**rest, **answers})
    assert read == {**rest, "ok": verdict}


@pytest.mark.parametrize(
    "answers",
    [
        {"ok_approved": True, "ok_rejected": True},
        {"ok": ["approve", "reject"]},
        {"ok": "no", "ok_approved": True},
    ],
)
def test_approve_and_reject_at_once_is_told(answers: dict[str, Any]) -> None:
    rest = {key: answer for key, answer in RIGHT.items() if key != "ok"}
    assert forms.problems(FORM, forms.normalise(FORM, {**rest, **answers})) == {"ok": "approve or reject, not both"}


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("milk, sugar", ["milk", "sugar"]),
        (["MILK"], ["milk"]),
        ("salt, pepper", ["salt, pepper"]),
        (["sugar", "salt, pepper"], ["sugar", "salt, pepper"]),
        ("", []),
        ([], []),
        ("milk, tea", ["milk", "tea"]),
    ],
)
def test_several_options_may_be_typed_between_commas(typed: Any, chosen: list[str]) -> None:
    assert forms.normalise(FORM, {**RIGHT, "extras": typed})["extras"] == chosen


def test_options_are_found_whatever_their_case_but_never_by_guess() -> None:
    form = Form("Case", [forms.select("a", ["yes", "YES", "No"])])
    assert forms.normalise(form, {"a": " no "}) == {"a": "No"}
    assert forms.normalise(form, {"a": "YES"}) == {"a": "YES"}
    assert forms.normalise(form, {"a": "Yes"}) == {"a": "Yes"}
    assert "not an option" in forms.problems(form, {"a": "Yes"})["a"]


def test_what_a_page_sends() -> None:
    page = {"ok": ["approve"], "size": ["small"], "note": ["a\r\nb\rc"], "text": [""]}
    read = forms.normalise(FORM, page, complete=True)
    assert read == {"ok": True, "size": "small", "note": "a\nb\nc", "text": "", "extras": []}
    assert forms.problems(FORM, read) == {}


def test_a_text_to_edit_stays_as_it_is_without_an_answer() -> None:
    assert forms.normalise(FORM, {"ok": True}) == {"ok": True, "text": "old"}


def test_normalising_twice_changes_nothing_more() -> None:
    once = forms.normalise(FORM, {"ok": "send", "size": "LARGE", "extras": "milk", "note": "\r\n", "more": 1})
    assert forms.normalise(FORM, once) == once


def test_the_schema_names_every_answer() -> None:
    assert forms.schema(Form("A", [*FIELDS[1:5], forms.multi_select_input("none", [], label="None")])) == {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "size": {"enum": ["small", "Large"]},
            "extras": {"type": "array", "items": {"enum": ["milk", "sugar", "salt, pepper"]}, "uniqueItems": True},
            "note": {"type": "string"},
            "none": {"type": "array", "items": False, "uniqueItems": True, "title": "None"},
        },
        "required": ["ok", "size", "extras", "note", "none"],
        "additionalProperties": False,
    }
