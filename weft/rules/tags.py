"""What a tag is: 1 to 64 of the letters, digits, `_` and `-` of ASCII, matched whole, case kept, nothing
trimmed.

Whoever tags in code is held to that strictly (`check`); whoever passes on a value from outside may have it
made into a tag (`normalise`). The order of tags is not here: the store keeps it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final

from weft.errors import InvalidTag

LONGEST: Final = 64
MOST: Final = 64
"""How many tags one call may name."""

_KEPT: Final = 47
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_RULE: Final = "A tag is 1 to 64 of the characters A-Z, a-z, 0-9, _ and -."


def legal(tag: Any) -> str | None:
    """None for a legal tag; else why not: the character, its position (from 1) and the tag, or its length."""
    if not isinstance(tag, str):
        return f"a tag is a text, not {tag!r}"
    if not tag:
        return "a tag cannot be empty"
    if len(tag) > LONGEST:
        return f"a tag has at most {LONGEST} characters, this one has {len(tag)}"
    found = _ILLEGAL.search(tag)
    if found is None:
        return None
    return f"the tag {tag!r} has {found[0]!r} (U+{ord(found[0]):04X}) at position {found.start() + 1}"


def check(tags: Sequence[str]) -> list[str]:
    """The tags of one call, unchanged. InvalidTag if there are none or too many, or if one is illegal."""
    if isinstance(tags, str):
        raise InvalidTag(f"tags are a list of texts, not the one text {tags!r}", hint=f"Write [{tags!r}].")
    tags = list(tags)
    if not tags:
        raise InvalidTag("a call needs at least one tag", hint=_RULE)
    if len(tags) > MOST:
        raise InvalidTag(f"a call takes at most {MOST} tags, this one has {len(tags)}")
    for tag in tags:
        reason = legal(tag)
        if reason is not None:
            raise InvalidTag(reason, hint=_RULE)
    return tags


def normalise(value: str) -> str:
    """The tag of any text: itself where legal, else a legible part and a hash. InvalidTag if empty."""
    if not value:
        raise InvalidTag("a tag cannot be made of an empty text", hint=_RULE)
    if legal(value) is None:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_ILLEGAL.sub('_', value)[:_KEPT]}-{digest[:16]}"
