"""Pieces of run ids: what they may look like, and which ids they mean."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.service.ids import _as_ending, _bounds, _clean, _is_whole


@given(st.uuids(), st.integers(min_value=4, max_value=36))
def test_every_beginning_bounds_its_id(run: UUID, length: int):
    piece = str(run)[:length]
    bounds = _bounds(piece)
    assert bounds is not None
    lowest, highest = bounds
    assert lowest <= run <= highest
    assert str(lowest).startswith(piece.rstrip("-"))
    assert str(highest).startswith(piece.rstrip("-"))


@given(st.uuids(), st.integers(min_value=5, max_value=35))
def test_every_ending_is_spelled_as_the_id_ends(run: UUID, length: int):
    piece = str(run)[-length:]
    ending = _as_ending(piece)
    assert ending is not None
    assert str(run).endswith(ending)
    assert ending == piece.lstrip("-")


@given(st.uuids(), st.integers(min_value=4, max_value=31))
def test_dashes_may_be_left_out(run: UUID, length: int):
    bounds = _bounds(run.hex[:length])
    assert bounds is not None and bounds[0] <= run <= bounds[1]
    ending = _as_ending(run.hex[-length:])
    assert ending is not None and str(run).endswith(ending)


def test_whole_ids():
    run = UUID("9d3f8f4e-0000-7000-8000-0123456789ab")
    assert _is_whole(str(run)) and _is_whole(run.hex)
    assert not _is_whole(str(run)[1:])
    assert not _is_whole("9d3f-8f4e0000-7000-8000-0123456789ab")


def test_dashes_in_the_wrong_place_mean_no_id():
    assert _bounds("9d3-f8f4e") is None
    assert _as_ending("0123-456789ab") is None


@pytest.mark.parametrize("piece", ["abc", "----", "", "a-b-c"])
def test_too_short(piece):
    with pytest.raises(UsageError):
        _clean(piece)


@pytest.mark.parametrize("piece", ["xyzw", "../..", "abcg", "1" * 37])
def test_characters_that_no_id_has(piece):
    with pytest.raises(UsageError, match="no run id nor a piece of one"):
        _clean(piece)


def test_case_and_blanks_do_not_matter():
    assert _clean(" 9D3F8F4E\n") == "9d3f8f4e"
