"""Where reading goes on after an error.

A bad entry costs its own line, or, where it opened a bracket, the lines up to the closing one. Reading goes on at the
next line, or where the enclosing braces close, so that one mistake is one error and everything else is still read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.lang.parsing.tokens import BRACES, CLOSERS, END, ENTRY_STARTS, MARKERS, OPENERS, Token

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_DECLARES: Final = re.compile(rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*[ \t]*=")
_DECLARES_OR_SETS: Final = re.compile(rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*[ \t]*(?:=|\??[ \t]*:)")
_GOES_ON: Final = frozenset({"ARROW", "LATE_ARROW", *BRACES})
_HEADER_WORDS: Final = frozenset({"ID", "GROUP", "LOOP", "TRUE", "FALSE", "NULL", "BAD_NUMBER", "BAD_CHARACTER"})
_INDENT: Final = re.compile(r"[ \t]*")


class Resumption(NamedTuple):
    """`at` is the offset to go on from; `opens_body`: a body begins there whose header is lost."""

    at: int
    opens_body: bool = False


def begins_entry(text: str, first: Token, token: Token, *, in_value: bool) -> bool:
    """Whether this token looks like the first of a new entry, though the entry of `first` has an open bracket.

    It does where its line stands no deeper than that entry's line and begins as an entry does.
    """
    line = text.rfind("\n", 0, token.start) + 1
    if line <= first.start or text[line : token.start].strip(" \t"):
        return False
    if _indent(text, token.start) > _indent(text, first.start):
        return False
    return (_DECLARES_OR_SETS if in_value else _DECLARES).match(text, token.start) is not None


def resume(text: str, rest: Iterator[Token], *, bad: list[Token], inside: bool, whole: bool) -> Resumption:
    """Skips what belongs to a bad entry.

    `bad` are the tokens of the entry that were read before the error, `rest` the tokens from the error on, `inside`
    says whether braces enclose the entry. `whole` says that its brackets are sound, and skipped to where they close.
    """
    open_: list[Token] = []
    declares = _declares(bad)
    in_header = True
    previous: Token | None = None
    first: Token | None = None
    for count, token in enumerate(itertools.chain(bad, rest)):
        kind = token.type
        read_before = count < len(bad)
        first = first or token
        if kind == END:
            return Resumption(token.start)
        if previous is not None and text.find("\n", previous.end, token.start) >= 0:
            in_header = False
            if open_:
                in_value = open_[-1].type in ("LSQB", *BRACES)
                if not whole and kind in ENTRY_STARTS and begins_entry(text, first, token, in_value=in_value):
                    return Resumption(token.start)
            elif not read_before and (
                kind in ENTRY_STARTS or (count > len(bad) and not (declares and kind in _GOES_ON))
            ):
                return Resumption(token.start)
        if kind in CLOSERS:
            if open_:
                open_.pop()
            elif inside and kind == "RBRACE" and not read_before:
                return Resumption(token.start)
        elif kind in OPENERS and kind not in MARKERS:
            if declares and not whole and not open_ and kind in BRACES and not read_before:
                return Resumption(token.start, opens_body=True)
            open_.append(token)
        elif kind == "EQUAL" and in_header:
            declares = True
        elif kind == "OPEN_STRING" and inside and token.text.endswith("}") and not open_:
            line = text.rfind("\n", 0, token.start) + 1
            if "{" in text[line : token.start]:
                return Resumption(token.end - 1)
        in_header = in_header and kind in _HEADER_WORDS
        previous = token
    return Resumption(len(text))


def header(bad: list[Token], at: int) -> list[Token]:
    """Tokens that stand in for a header that could not be read: what was read of it, with empty names for the rest."""
    name = bad[0] if _declares(bad) else Token("ID", "", at, at)
    kind = bad[2] if len(bad) > 2 and bad[2].type in ("ID", "GROUP", "LOOP") else Token("ID", "", at, at)
    return [name, Token("EQUAL", "=", at, at), kind]


def _declares(bad: list[Token]) -> bool:
    return len(bad) > 1 and bad[0].type == "ID" and bad[1].type == "EQUAL"


def _indent(text: str, at: int) -> int:
    line = text.rfind("\n", 0, at) + 1
    match = _INDENT.match(text, line)
    return match.end() - line if match else 0
