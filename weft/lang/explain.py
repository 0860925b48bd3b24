"""What to say about a token that cannot stand where it stands: in a person's words, never the grammar's."""

from __future__ import annotations

from typing import NamedTuple

from weft.lang.diagnostics import Span
from weft.lang.tables import Stack
from weft.lang.tokens import END, MAX_NESTING, Token


class Finding(NamedTuple):
    span: Span
    message: str
    hint: str | None = None
    slug: str = "parse"


def too_deep(opener: Token) -> Finding:
    return Finding(
        Span(opener.start, opener.end),
        f"brackets nest deeper than {MAX_NESTING} levels here",
        "a value can also be built by nodes; groups can be moved into files of their own",
        "nesting-too-deep",
    )


def never_closed(text: str, opener: Token) -> Finding:
    last = text.rstrip().count("\n") + 1
    return Finding(
        Span(opener.start, opener.end), f"this `{opener.text}` is never closed: the file ends at line {last}"
    )


def explain(text: str, stack: Stack, token: Token) -> Finding:
    if token.type == END:
        return Finding(Span(token.start, token.end), "the file ends here, in the middle of a line")
    return Finding(Span(token.start, token.end), f"`{token.text}` cannot stand here")
