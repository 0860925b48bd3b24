"""The names of waits, when they end by time, and the rest between two tries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.rules import waits

SECRET = b"of the database"
RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
places = st.tuples(
    st.uuids(),
    st.text(max_size=8),
    st.lists(st.integers() | st.text(max_size=4), max_size=3).map(tuple),
    st.integers(),
    st.integers(0, 9),
)
delays = st.timedeltas(timedelta(microseconds=1), timedelta(days=400))
zones = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(timezone)
instants = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)


@dataclass
class Retry:
    first: timedelta
    max: timedelta
    attempts: int = 3


# --- tokens -----------------------------------------------------------------------------------------------


@given(places)
def test_a_token_leads_to_its_run_and_is_the_same_each_time(place):
    token = waits.token(SECRET, *place)
    assert waits.run_of(token) == place[0]
    assert waits.token(SECRET, *place) == token, "a repeated registration is no second wait"


@given(places, places)
def test_places_that_differ_have_tokens_that_differ(one, other):
    assume(one != other)
    assert waits.token(SECRET, *one) != waits.token(SECRET, *other)


def test_no_place_can_be_written_so_that_it_looks_like_another():
    tokens = {
        waits.token(SECRET, RUN, *place)
        for place in [
            ("a", (), 1, 1),
            ("a", (1,), 1, 1),
            ("a", ("1",), 1, 1),
            ("a|1", (), 1, 1),
            ('a",[],1', (), 1, 1),
            ("a", (), 11, 1),
            ("a", (), 1, 11),
            ("a", (), -1, 1),
        ]
    }
    assert len(tokens) == 8


def test_a_token_cannot_be_made_without_the_secret():
    assert waits.token(b"another", RUN, "a", (), 0, 0) != waits.token(SECRET, RUN, "a", (), 0, 0)
    assert RUN.hex in waits.token(SECRET, RUN, "a", (), 0, 0)


@pytest.mark.parametrize(
    "text",
    ["", "x", RUN.hex, str(RUN), "g" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n", "A" * 64, "٣" * 64, None, 7],
)
def test_a_malformed_token_is_refused_and_not_repeated(text):
    with pytest.raises(ValueError, match="64 characters") as refused:
        waits.run_of(text)
    assert not text or str(text) not in str(refused.value)


# --- retries ----------------------------------------------------------------------------------------------


def test_the_rest_doubles_up_to_the_most():
    retry = Retry(timedelta(seconds=1), timedelta(seconds=10))
    rests = [waits.retry_due(retry, attempt).total_seconds() for attempt in range(1, 8)]
    assert rests == [1, 2, 4, 8, 10, 10, 10]


def test_a_first_rest_beyond_the_most_is_cut_and_none_stays_none():
    assert waits.retry_due(Retry(timedelta(hours=1), timedelta(minutes=1)), 1) == timedelta(minutes=1)
    assert waits.retry_due(Retry(timedelta(0), timedelta(minutes=1)), 10**9) == timedelta(0)


@given(delays, delays, st.integers(1, 10**12))
def test_the_rest_never_shrinks_never_passes_the_most_and_never_overflows(first, most, attempt):
    retry = Retry(first, most)
    rest = waits.retry_due(retry, attempt)
    assert timedelta(0) < rest <= most
    assert rest <= waits.retry_due(retry, attempt + 1) <= 2 * rest
    assert waits.retry_due(Retry(first, timedelta.max), 10**12) == timedelta.max


# --- instants ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00.000Z"),
        ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00.000Z"),
        (" 2026-12-01 09:00-00:30 ", "2026-12-01T09:30:00.000Z"),
        ("2026-12-01T09:00:00.250+00:00", "2026-12-01T09:00:00.250Z"),
        ("1999-12-31T23:59:59.9991Z", "2000-01-01T00:00:00.000Z"),
    ],
)
def test_an_instant_is_read_whatever_its_offset_and_whether_or_not_it_has_passed(text, said):
    assert waits.instant_text(waits.instant(text)) == said


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("2026-12-01T09:00:00", "'2026-12-01T09:00:00' has no offset"),
        ("2026-12-01", "has no offset"),
        (datetime(2026, 12, 1), "has no offset"),
        ("tomorrow", "'tomorrow' is not an instant; write it as ISO 8601"),
        ("", "is not an instant"),
        ("2026-13-01T00:00Z", "is not an instant"),
        ("2026-12-01T09:00:00+25:00", "is not an instant"),
        ("x" * 10_000, "x…' is not an instant"),
        ("0001-01-01T00:00+14:00", "outside the years 1 to 9999"),
        ("9999-12-31T23:00-14:00", "outside the years 1 to 9999"),
        (1764579600, "a text or a datetime, not int"),
        (None, "a text or a datetime, not NoneType"),
    ],
)
def test_what_names_no_instant_is_refused_with_a_reason(value, why):
    with pytest.raises(ValueError, match=re.escape(why)) as refused:
        waits.instant(value)
    assert len(str(refused.value)) < 200


@given(instants)
def test_what_is_written_down_is_the_same_millisecond_and_never_earlier(value):
    text = waits.instant_text(value)
    again = waits.instant(text)
    assert timedelta(0) <= again - value < timedelta(milliseconds=1)
    assert waits.instant_text(again) == text
    assert waits.instant(value) == value


def test_the_last_instant_of_all_can_be_written():
    assert waits.instant_text(datetime.max.replace(tzinfo=UTC)) == "9999-12-31T23:59:59.999Z"


def test_a_delay_counts_from_now_may_be_past_and_cannot_pass_the_calendar():
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert waits.after(now, timedelta(days=3)) == datetime(2026, 12, 4, tzinfo=UTC)
    assert waits.after(now, timedelta(days=-3)) < now
    with pytest.raises(ValueError, match="after the year 9999"):
        waits.after(now, timedelta.max)
    with pytest.raises(ValueError, match="before the year 1"):
        waits.after(now, timedelta.min)


def test_a_token_is_as_long_whatever_it_stands_for():
    assert len(waits.token(SECRET, RUN, "n" * 500, tuple(range(50)), 10**6, 99)) == 64
