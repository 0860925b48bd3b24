import pytest

from catalog.waits.human_query import HumanQuery
from weft.testing import CLOSED

APPROVAL = [
    {"kind": "display", "key": "draft", "label": "Draft"},
    {"kind": "approve_reject", "key": "ok", "label": "Send it?", "approveLabel": "Send", "rejectLabel": None},
    {"kind": "text_input", "key": "note"},
]


async def answered(rig, fields, answers, **inputs):
    rig.signal(answers)
    outcome = await rig.run(HumanQuery, {"fields": fields, **inputs})
    assert outcome.failed is None, outcome.failed
    return outcome


async def test_the_form_shows_what_came_and_says_its_title(rig):
    outcome = await rig.run(
        HumanQuery, {"fields": APPROVAL, "title": "A draft", "description": "Read it.", "draft": {"to": "Ann"}}
    )
    (wait,) = outcome.waiting
    assert wait["spec"] == {
        "title": "A draft",
        "description": "Read it.",
        "fields": [
            {"kind": "display", "key": "draft", "label": "Draft", "value": {"to": "Ann"}},
            {"kind": "approve_reject", "key": "ok", "label": "Send it?", "approveLabel": "Send"},
            {"kind": "text_input", "key": "note"},
        ],
    }
    assert "due" not in wait


@pytest.mark.parametrize("title", [{}, {"title": ""}, {"title": " "}])
async def test_without_a_title_the_nodes_label_stands_there(rig, title):
    outcome = await rig.run(HumanQuery, {"fields": APPROVAL, **title})
    assert outcome.waiting[0]["spec"]["title"] == "humanQuery"


@pytest.mark.parametrize(
    ("verdict", "says", "closes"), [("approve", "approved", "rejected"), (False, "rejected", "approved")]
)
async def test_of_approve_and_reject_one_says_true_and_the_other_closes(rig, verdict, says, closes):
    outcome = await answered(rig, APPROVAL, {"ok": verdict, "note": ""}, draft=1)
    assert outcome.outputs == {f"ok_{says}": True, "note": ""}
    assert sorted(outcome.closed) == [f"ok_{closes}", "timedOut"]


async def test_every_kind_that_asks_gives_its_answer(rig):
    fields = [
        {"kind": "select", "key": "size", "options": ["small", "large"]},
        {"kind": "multi_select", "key": "extras", "options": ["milk", "sugar"]},
        {"kind": "select_input", "key": "who"},
        {"kind": "multi_select_input", "key": "days"},
        {"kind": "textarea", "key": "why"},
        {"kind": "editable_text_input", "key": "subject"},
        {"kind": "editable_textarea", "key": "text"},
    ]
    outcome = await answered(
        rig,
        fields,
        {"size": "Large", "extras": "milk, sugar", "who": "Ann", "days": ["Mon"], "why": "a\r\nb", "text": "new"},
        who=["Ann", "Bob"],
        days=["Mon", "Tue"],
        subject="Hello",
        text="old",
    )
    assert outcome.outputs == {
        "size": "large",
        "extras": ["milk", "sugar"],
        "who": "Ann",
        "days": ["Mon"],
        "why": "a\nb",
        "subject": "Hello",
        "text": "new",
    }


async def test_what_nothing_came_for_is_left_out_but_a_text_to_edit_is_empty(rig):
    fields = [
        {"kind": "display", "key": "shown"},
        {"kind": "select_input", "key": "who"},
        {"kind": "multi_select_input", "key": "days"},
        {"kind": "editable_text_input", "key": "subject"},
    ]
    outcome = await answered(rig, fields, {}, shown=CLOSED, who=CLOSED)
    assert outcome.waits[0]["spec"]["fields"] == [{"kind": "editable_text_input", "key": "subject", "value": ""}]
    assert outcome.outputs == {"subject": ""}
    assert sorted(outcome.closed) == ["days", "timedOut", "who"]


async def test_a_null_is_shown(rig):
    outcome = await rig.run(HumanQuery, {"fields": [{"kind": "display", "key": "shown"}], "shown": None})
    assert outcome.waiting[0]["spec"]["fields"] == [{"kind": "display", "key": "shown", "value": None}]


async def test_nothing_to_choose_from_is_a_failure(rig):
    outcome = await rig.run(HumanQuery, {"fields": [{"kind": "select_input", "key": "who"}], "who": []})
    assert "`who`" in outcome.failed.message
    assert "nothing to choose from" in outcome.failed.message


async def test_a_wrong_answer_is_refused_and_the_right_one_taken(rig):
    rig.signal({"ok": "maybe", "note": ""})
    with pytest.raises(AssertionError, match="“maybe” is neither approve nor reject"):
        await rig.run(HumanQuery, {"fields": APPROVAL})


async def test_a_time_out_says_so_and_closes_the_rest(rig):
    outcome = await rig.run(HumanQuery, {"fields": APPROVAL, "timeoutSecs": 3 * 86_400})
    assert outcome.outputs == {"timedOut": True}
    assert sorted(outcome.closed) == ["note", "ok_approved", "ok_rejected"]
    assert outcome.waits[0]["due"] == "2030-01-04T00:00:00.000Z"


async def test_a_time_out_that_nothing_hangs_on_is_a_failure_that_names_form_and_time(rig):
    outcome = await rig.run(
        HumanQuery, {"fields": APPROVAL, "title": "Send?", "timeoutSecs": 90.5}, wired=["note", "ok_approved"]
    )
    assert outcome.failed.type == "WaitTimedOut"
    assert "`humanQuery`: the form “Send?” did not come to an end within 1 minute 30 seconds" in outcome.failed.message
    assert "humanQuery.timedOut" in outcome.failed.hint


async def test_an_answer_in_time_closes_the_time_out(rig):
    outcome = await answered(rig, [{"kind": "text_input", "key": "note"}], {"note": "x"}, timeoutSecs=1)
    assert outcome.outputs == {"note": "x"}
    assert outcome.closed == ["timedOut"]
    assert rig.now.second == 0


@pytest.mark.parametrize(("seconds", "words"), [(1e300, "too long"), (4e9, "a hundred years")])
async def test_a_time_out_beyond_reason_is_refused(rig, seconds, words):
    outcome = await rig.run(HumanQuery, {"fields": APPROVAL, "timeoutSecs": seconds})
    assert words in outcome.failed.message


async def test_a_skip_closes_everything_and_is_no_reject(rig):
    rig.skip()
    outcome = await rig.run(HumanQuery, {"fields": APPROVAL, "timeoutSecs": 5})
    assert outcome.skipped
    assert outcome.failed is None
    assert outcome.outputs == {}


@pytest.mark.parametrize("effects", [1, 2])
async def test_a_crash_asks_no_second_time(rig, effects):
    rig.crash_after(effects)
    outcome = await answered(rig, [{"kind": "text_input", "key": "note"}], {"note": "x"})
    assert outcome.outputs == {"note": "x"}
    assert len(outcome.waits) == 1
