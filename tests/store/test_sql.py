"""Cutting a file into its named statements, and packing events into rows: the store's two parts without a database."""

from __future__ import annotations

import json

import pytest

from weft.store.runs.packing import ROW_LIMIT, pack
from weft.store.sql import load, parse


def test_a_file_is_cut_at_its_headers() -> None:
    queries = parse("-- about the file\n\n-- name: one\n-- a remark\nSELECT 1\n\n-- name: two\nSELECT 2\n", "x.sql")
    assert queries.one == "-- a remark\nSELECT 1"
    assert queries.two == "SELECT 2"
    with pytest.raises(AttributeError, match=r"x\.sql has no statement named three"):
        _ = queries.three


@pytest.mark.parametrize("text", ["SELECT 1", "-- name: one\nSELECT 1\n-- name: one\nSELECT 2"])
def test_a_file_without_headers_or_with_one_twice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"x\.sql"):
        parse(text, "x.sql")


def test_the_statements_of_a_module_stand_beside_it() -> None:
    assert "pg_advisory_xact_lock" in load("weft.store.runs.tags").lock


def test_rows_hold_all_events_in_order_and_only_a_lone_event_is_over_the_limit() -> None:
    sizes = [10, ROW_LIMIT, 10, 10, ROW_LIMIT // 2, ROW_LIMIT // 2, ROW_LIMIT * 2, 1]
    events = [json.dumps("x" * size) for size in sizes]
    rows = pack([events, [], ["1", "2"]])
    assert rows.owner == [1] * (len(rows.owner) - 1) + [3]
    assert [event for row in rows.events[:-1] for event in json.loads(row)] == [json.loads(event) for event in events]
    place = 0
    for offset, count, text in zip(rows.offset[:-1], rows.count[:-1], rows.events[:-1], strict=True):
        assert offset == place
        assert count == 1 or len(text) <= ROW_LIMIT + count + 1
        place += count
    assert (rows.offset[-1], rows.count[-1], rows.events[-1]) == (0, 2, "[1,2]")
