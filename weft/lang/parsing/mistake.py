"""A token that cannot stand where it stands, with what was read before it and what could have come instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from weft.lang.diagnostics import Source, Span
from weft.lang.parsing.recovery import begins_entry
from weft.lang.parsing.tokens import END, ENTRY_STARTS, Open, Token
from weft.lang.parsing.words import found


class Finding(NamedTuple):
    span: Span
    message: str
    hint: str | None = None
    slug: str = "parse"


def span_of(token: Token) -> Span:
    return Span(token.start, token.end)


@dataclass(slots=True)
class Mistake:
    """`entry` is what the parser holds of the unfinished entry: tokens, and parts that were made of tokens.

    `previous` is the token before (None where reading began anew), `last_part` the entry before this one, `opener` the
    innermost open bracket, `owner` whose braces are around, `wanted` the terminals that could have come.
    """

    source: Source
    token: Token
    previous: Token | None
    entry: list[Any]
    last_part: Any
    opener: Open | None
    owner: Literal["file", "node", "group", "loop"]
    wanted: set[str]

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def kind(self) -> str:
        return self.token.type

    @property
    def at_entry(self) -> bool:
        """A new entry could begin here: the one before, if it is still on the stack, is whole."""
        return self.wanted >= ENTRY_STARTS

    @property
    def belongs_to_header(self) -> bool:
        """It would go on with the declaration before it, if it stood where such a part may stand."""
        return (self.kind == "BRACE_BELOW" and "LBRACE" in self.wanted) or (
            self.kind == "LATE_ARROW" and "ARROW" in self.wanted
        )

    @property
    def line_ended(self) -> bool:
        """The line of the token before had ended."""
        return self.kind == END or (
            self.previous is not None and self.text.find("\n", self.previous.end, self.token.start) >= 0
        )

    @property
    def _broke_off(self) -> bool:
        """The line of the token before had ended, and its entry was not whole."""
        return self.line_ended and bool(self.entry) and not self.at_entry

    @property
    def but(self) -> str:
        """The end of a sentence that says what came instead."""
        if self.kind == END:
            return "and the file ends"
        return "and the line ends" if self._broke_off else f"not {found(self.token)}"

    @property
    def next_entry(self) -> Token | None:
        """The first token, among those read and this one, that looks like the next entry behind an open bracket."""
        if self.opener is None or self.opener.what == "body" or not self.entry or self.entry[0].__class__ is not Token:
            return None
        for part in (*self.entry[1:], self.token):
            if (
                part.__class__ is Token
                and part.start > self.opener.token.start
                and part.type in ENTRY_STARTS
                and begins_entry(self.text, self.entry[0], part, in_value=self.opener.what == "value")
            ):
                return part
        return None

    def entry_is(self, *kinds: str) -> bool:
        """Whether the entry so far is exactly these tokens; `A/B` is either."""
        return len(self.entry) == len(kinds) and all(
            part.__class__ is Token and part.type in kind.split("/")
            for part, kind in zip(self.entry, kinds, strict=True)
        )

    def named_before_colon(self) -> Token | None:
        """The name in the last `name :` or `name ? :` that is still unfinished."""
        tokens = [part for part in self.entry if part.__class__ is Token]
        for name, colon in zip(reversed(tokens[:-1]), reversed(tokens[1:]), strict=True):
            if colon.type == "COLON" and name.type == "ID":
                found_name: Token = name
                return found_name
        return None

    def here(self, message: str, hint: str | None = None) -> Finding:
        """At the token; or, where its line had ended before it, at the last that was read."""
        if self._broke_off and self.previous is not None:
            return Finding(span_of(self.previous), message, hint)
        return Finding(span_of(self.token), message, hint)
