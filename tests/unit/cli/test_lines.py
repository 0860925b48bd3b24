"""Lines of text from stored facts."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.lines import CUT_AT, columns, cut, event_line, iso, one_line, shown

AT = datetime(2024, 9, 3, 8, 46, 41, 500_000, tzinfo=UTC)
RUN = "9d3f8f4e-0000-7000-8000-0123456789ab"


def test_a_stopped_runs_last_line_is_the_documented_one():
    event = {
        "kind": "execution_cancelled",
        "reason": f"Stopped by execution {RUN} (tag user_7)",
        "cause": {"kind": "execution", "by": RUN, "tag": "user_7"},
    }
    assert event_line(event, AT) == (
        f"[1725353201] execution_cancelled   reason=Stopped by execution {RUN} (tag user_7)"
    )


def test_full_adds_the_structured_cause():
    event = {"kind": "execution_cancelled", "reason": "why", "cause": {"kind": "user"}}
    assert event_line(event, AT, full=True).endswith(' reason=why cause={"kind":"user"}')


def test_a_nodes_line():
    event = {"kind": "port_emitted", "node": "draft", "call": 0, "port": "text", "value": "hello"}
    assert event_line(event, AT) == "[1725353201] port_emitted          draft call=0 port=text value=hello"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("bare words", "bare words"),
        (["a", "b"], "a,b"),
        (["a", 1], '["a",1]'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (True, "true"),
        (1.5, "1.5"),
        ("two\nlines\x1b[2J", "two\\nlines\\u001b[2J"),
        ("naïve 東京 🎉", "naïve 東京 🎉"),
    ],
)
def test_values_as_text(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_what_is_empty_is_left_out_but_an_emitted_value_never_is(empty):
    assert event_line({"kind": "log_line", "node": "n", "text": empty}, AT).endswith(" n")
    assert " value=" in event_line({"kind": "port_emitted", "node": "n", "value": empty}, AT) + " "


def test_zero_and_false_are_not_empty():
    line = event_line({"kind": "port_emitted", "node": "n", "call": 0, "value": False}, AT)
    assert line.endswith("call=0 value=false")


def test_race_65_a_cut_splits_no_character_and_never_drops_the_reason():
    reason = "because " + "ü" * 300
    error = {"message": "x" * 500}
    event = {"kind": "node_cancelled", "node": "n", "value": "東" * 500, "error": error, "reason": reason}
    line = event_line(event, AT)
    assert f"reason={reason}" in line
    assert f"value={'東' * (CUT_AT - 1)}… " in line
    assert line.encode().decode() == line
    assert "東" * 500 in event_line(event, AT, full=True)


def test_a_cut_keeps_an_accent_with_its_letter():
    assert cut("e\u0301" * 100, 6) == "e\u0301e\u0301…"
    assert cut("👩\u200d💻" * 3, 3) == "…"


@given(st.text(max_size=300), st.integers(min_value=1, max_value=130))
def test_a_cut_text_fits_and_begins_like_the_whole(text, limit):
    short = cut(text, limit)
    assert len(short) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@given(st.text(max_size=200))
def test_one_line_is_one_line_without_control_characters(text):
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert not any(unicodedata.category(char) == "Cc" for char in line)


def test_times_as_dates():
    event = {"kind": "execution_completed"}
    assert event_line(event, AT, clock="utc") == "[2024-09-03T08:46:41.500Z] execution_completed"
    local = event_line(event, AT, clock="local")
    assert datetime.fromisoformat(local[1 : local.index("]")]) == AT
    assert iso(AT) == "2024-09-03T08:46:41.500Z"


def test_columns_are_as_wide_as_their_widest_cell_and_never_cut():
    assert columns([["a", "long" * 50, ""], ["abc", "x", "tag"]]) == [
        "a    " + "long" * 50,
        "abc  x" + " " * 199 + "  tag",
    ]
    assert columns([]) == []
