"""The text of a string, a heredoc or a number, and the value it stands for.

Two dialects: weft's own, and JSON's inside lists and objects. A text that stands for no value raises `BadLiteral` with
the reason in a person's words; where it stands is the caller's knowledge.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_INT64: Final = 1 << 63
_LONGEST_INT64: Final = len(str(-_INT64))


class BadLiteral(Exception):
    """`at` is the offset of the mistake from the literal's start."""

    def __init__(self, message: str, at: int = 0, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


def read_string(text: str) -> str:
    """The value of a weft string, quotes included in `text`: any escape but the five known keeps its backslash."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[0]), inner)


def read_heredoc(text: str) -> str:
    """The value of a heredoc, fences included in `text`: verbatim, less one line end inside each fence."""
    inner = text[3:-3]
    if inner.startswith("\n"):
        inner = inner[1:]
    elif inner.startswith("\r\n"):
        inner = inner[2:]
    if inner.endswith("\r\n"):
        inner = inner[:-2]
    elif inner.endswith("\n"):
        inner = inner[:-1]
    return inner.replace("\\```", "```")


def read_number(text: str) -> int | float:
    """The value of a number of either dialect: exact within signed 64 bits, else the nearest double."""
    if len(text) <= _LONGEST_INT64 and "." not in text and "e" not in text and "E" not in text:
        value = int(text)
        if -_INT64 <= value < _INT64:
            return value
    number = float(text)
    if not math.isfinite(number):
        raise BadLiteral("this number is too large: it does not fit a finite 64-bit floating-point number")
    return number


def read_json_string(text: str) -> str:
    """The value of a JSON string, quotes included in `text`."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        character = text[error.pos : error.pos + 1]
        if error.msg.startswith("Invalid control"):
            raise BadLiteral(
                f"a string inside a list or object holds no raw control character: write {json.dumps(character)[1:-1]}",
                error.pos,
            ) from None
        raise BadLiteral(
            f"{text[error.pos : error.pos + 2]} is no escape of JSON, whose rules hold inside lists and objects",
            error.pos,
            r"the escapes are \" \\ \/ \b \f \n \r \t and \u with four hexadecimal digits",
        ) from None
    assert isinstance(value, str)
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise BadLiteral(r"half of a surrogate pair is no character: write both halves, \uD83D\uDE00", 0)
    return value
