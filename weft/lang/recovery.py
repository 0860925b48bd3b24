"""Where reading goes on after an error.

A bad entry costs its own line, or, where it opened a bracket, the lines up to the closing one. Reading goes on at the
next line, or where the enclosing braces close, so that one mistake is one error and everything else is still read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.lang.tokens import BRACES, CLOSERS, END, ENTRY_STARTS, MARKERS, OPENERS, Token

_LOOKS_LIKE_ENTRY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ \t]*\.[ \t]*[A-Za-z_][A-Za-z0-9_]*)*[ \t]*=")
_GOES_ON: Final = frozenset({"ARROW", "LATE_ARROW", *BRACES})
_INDENT: Final = re.compile(r"[ \t]*")


class Resumption(NamedTuple):
    """`at` is the offset to go on from; `opens_body`: a body begins there whose header is lost."""

    at: int
    opens_body: bool = False


def resume(text: str, rest: Iterator[Token], *, bad: list[Token], inside: bool) -> Resumption:
    """Skips what belongs to a bad entry.

    `bad` are the tokens of the entry that were read before the error, `rest` the tokens from the error on, `inside`
    says whether braces enclose the entry.
    """
    open_: list[Token] = []
    for token in bad:
        if token.type in CLOSERS:
            open_ and open_.pop()
        elif token.type in OPENERS and token.type not in MARKERS:
            open_.append(token)
    declares = _declares(bad)
    previous = bad[-1] if bad else None
    entry_indent = _indent(text, bad[0].start) if bad else None
    for count, token in enumerate(rest, len(bad)):
        if entry_indent is None:
            entry_indent = _indent(text, token.start)
        kind = token.type
        if kind == END:
            return Resumption(token.start)
        if previous is not None and text.find("\n", previous.end, token.start) >= 0:
            if not open_:
                if kind in ENTRY_STARTS or (count > len(bad) and not (declares and kind in _GOES_ON)):
                    return Resumption(token.start)
            elif _indent(text, token.start) <= entry_indent and _LOOKS_LIKE_ENTRY.match(text, token.start):
                return Resumption(token.start)
        if kind in CLOSERS:
            if open_:
                open_.pop()
            elif inside and kind == "RBRACE":
                return Resumption(token.start)
        elif kind in OPENERS and kind not in MARKERS:
            if declares and not open_ and kind in BRACES:
                return Resumption(token.start, opens_body=True)
            open_.append(token)
        elif kind == "EQUAL" and (previous is None or (previous.type == "ID" and count == 1)):
            declares = True
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
