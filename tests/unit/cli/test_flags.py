"""Reading the values of flags."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.flags import assignments, duration, since
from weft.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", timedelta(seconds=90)),
        ("0.5", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("250ms", timedelta(milliseconds=250)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        (" 1W ", timedelta(weeks=1)),
    ],
)
def test_durations(text, expected):
    assert duration(text, "--deadline") == expected


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 m 3", "1h30", "0", "0s", "9999999d", "1e3", "٣s", "nan"])
def test_what_is_no_duration_names_its_flag(text):
    with pytest.raises(UsageError, match=r"^--deadline "):
        duration(text, "--deadline")


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_a_usage_error(text):
    with contextlib.suppress(UsageError):
        assert duration(text, "--timeout") > timedelta()


NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_since():
    assert since("30m", NOW) == NOW - timedelta(minutes=30)
    assert since("2026-05-01T09:00:00+02:00", NOW) == datetime(2026, 5, 1, 7, tzinfo=UTC)
    assert since("2026-05-01T09:00:00Z", NOW) == datetime(2026, 5, 1, 9, tzinfo=UTC)
    assert since("2026-05-01", NOW).tzinfo is not None
    with pytest.raises(UsageError, match="neither an instant nor a duration"):
        since("yesterday", NOW)


def test_assignments():
    assert assignments(['a={"x": 1}', 'b={"y": "k=v"}'], "--from") == {"a": {"x": 1}, "b": {"y": "k=v"}}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("ask", "is not NODE=JSON"),
        ("={}", "is not NODE=JSON"),
        ("ask={", r"--emit ask: not JSON at character 2"),
        ("ask=", "not JSON"),
        ("ask=[1]", "expected an object"),
        ('ask={"x": NaN}', "NaN is not JSON"),
        ('ask={"x": 1, "x": 2}', "twice"),
        ("ask=" + "[" * 100_000, "nested too deep"),
    ],
)
def test_a_bad_assignment_is_one_clear_message(pair, message):
    with pytest.raises(UsageError, match=message) as refused:
        assignments([pair], "--emit")
    assert "\n" not in refused.value.message


def test_a_node_named_twice():
    with pytest.raises(UsageError, match="--from names a twice"):
        assignments(["a={}", "a={}"], "--from")
