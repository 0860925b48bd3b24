"""What a tag is, and how a value becomes one."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.errors import InvalidTag
from weft.rules import tags

legal_tags = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
anything = st.text(min_size=1, max_size=90) | st.text("aé 1-_.@\n", min_size=1, max_size=90)


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("49151@s.whatsapp.net", "49151_s_whatsapp_net-1efe080aa4c26dcf"),
        ("+33 6 12", "_33_6_12-9df142046f300e74"),
        ("+33.6.12", "_33_6_12-cca16c1eab46ce92"),
        ("x" * 65, "x" * 47 + "-9537c5fdf120482f"),
        ("\u00e9" * 70, "_" * 47 + "-78dcf717205d89b7"),
        ("a" * 64, "a" * 64),
    ],
)
def test_the_table_of_normalised_values(value, tag):
    assert tags.normalise(value) == tag


def test_race_11_normalising_is_by_character_hashes_the_original_and_leaves_legal_tags_alone():
    digest = hashlib.sha256("a  é@".encode()).hexdigest()[:16]
    assert tags.normalise("a  é@") == f"a____-{digest}", "one _ a character, runs not merged"
    assert digest == digest.lower()
    long = "é" * 100
    assert tags.normalise(long) == "_" * 47 + "-" + hashlib.sha256(long.encode()).hexdigest()[:16]
    assert tags.normalise("A-b_9") == "A-b_9"
    assert tags.normalise("\U0001f600").startswith("_-"), "a character beyond 16 bits is one"


@pytest.mark.parametrize("tag", ["é", "٣", "ａ", "ﬁ", "a\n", "\na", "a b", " a", "a ", "a.b", "a\x00"])
def test_race_12_only_ascii_and_only_the_whole_tag(tag):
    assert tags.legal(tag) is not None
    with pytest.raises(InvalidTag):
        tags.check([tag])
    assert tags.normalise(tag) != tag
    assert tags.legal(tags.normalise(tag)) is None


@given(anything)
def test_a_normalised_value_is_legal_and_stays_as_it_is(value):
    tag = tags.normalise(value)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}\Z", tag)
    assert tags.normalise(tag) == tag


@given(legal_tags)
def test_a_legal_tag_is_its_own_normal_form(tag):
    assert tags.normalise(tag) == tag
    assert tags.check([tag]) == [tag]


@given(anything, anything)
def test_values_that_differ_get_tags_that_differ(one, other):
    assume(one != other)
    assert tags.normalise(one) != tags.normalise(other)


def test_what_is_wrong_is_named():
    assert tags.legal("a b") == "the tag 'a b' has ' ' (U+0020) at position 2"
    assert tags.legal("é") == "the tag 'é' has 'é' (U+00E9) at position 1"
    assert tags.legal("x" * 65) == "a tag has at most 64 characters, this one has 65"
    assert tags.legal("") == "a tag cannot be empty"
    assert tags.legal(7) == "a tag is a text, not 7"


def test_a_call_is_checked_whole():
    assert tags.check(("b", "a", "b")) == ["b", "a", "b"]
    with pytest.raises(InvalidTag, match="'no good'"):
        tags.check(["good", "no good", "fine"])
    with pytest.raises(InvalidTag, match="at least one tag"):
        tags.check([])
    with pytest.raises(InvalidTag, match="at most 64 tags, this one has 65"):
        tags.check([f"t{number}" for number in range(65)])
    assert len(tags.check([f"t{number}" for number in range(64)])) == 64
    with pytest.raises(InvalidTag, match="a list of texts"):
        tags.check("abc")


def test_an_empty_value_makes_no_tag():
    with pytest.raises(InvalidTag, match="empty text"):
        tags.normalise("")
