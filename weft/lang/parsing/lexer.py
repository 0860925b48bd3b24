"""Text to tokens, by the parser's state.

The terminals are the grammar's; this module puts them into two regular expressions (one for the states that await
JSON, one for all others), adds the tokens that no rule accepts (so that every character belongs to a token and every
mistake has a place), and settles what depends on line ends. It plugs into lark's slot for a contextual lexer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final, Protocol

from weft.lang.diagnostics import Span
from weft.lang.parsing.tokens import END, Open, Token
from weft.lang.syntax import Comment

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_DECLARED: Final = frozenset({"BRACE_BELOW"})
_OUTSIDE_JSON: Final = frozenset({"STRING", "NUMBER"})
_INSIDE_JSON: Final = frozenset({"JSON_STRING", "JSON_NUMBER"})

# What is left when no terminal of the grammar matches. The last one takes any character.
MISFITS: Final = (
    ("COMMENT", r"#[^\r\n]*"),
    ("OPEN_STRING", r'"(?:[^"\\\r\n]|\\[^\r\n])*\\?'),
    ("OPEN_HEREDOC", r"```[\s\S]*"),
    ("BAD_NUMBER", r"[+-]?\.?[0-9](?:[eE][+-]|[A-Za-z0-9_.]|[+-](?=[0-9.]))*"),
    ("BAD_MARKER", r"@[A-Za-z_][A-Za-z0-9_-]*\(?"),
    ("EQUAL_AT_LINE_END", r"="),
    (END, r"\Z"),
    ("BAD_CHARACTER", r"[\s\S]"),
)


class Terminal(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def pattern(self) -> Any: ...


class TerminalSet(Protocol):
    @property
    def terminals(self) -> Collection[Terminal]: ...


class _Scanner:
    """One regular expression for all tokens of a mode, blanks before them included."""

    __slots__ = ("kinds", "match")

    def __init__(self, patterns: list[tuple[str, str]]) -> None:
        alternatives = "|".join(f"({pattern})" for _, pattern in patterns)
        self.match = re.compile(rf"[ \t\r\n]*+(?:{alternatives})").match
        self.kinds = ("", *(name for name, _ in patterns))


class Lexer:
    """The terminals of the grammar, ready to read any text; holds nothing of the text that it reads."""

    def __init__(
        self, conf: TerminalSet, states: dict[int, Collection[str]], always_accept: Collection[str] = ()
    ) -> None:
        self._by_text: dict[str, str] = {}
        patterns: list[tuple[str, str]] = []
        for terminal in sorted(conf.terminals, key=lambda each: -each.priority):
            if terminal.name in _DECLARED:
                continue
            written = terminal.pattern.value
            if terminal.pattern.type == "str" and (written.isalpha() or len(written) == 1):
                self._by_text[written] = terminal.name
            else:
                patterns.append((terminal.name, terminal.pattern.to_regexp()))
        marks = "".join(re.escape(text) for text in self._by_text if not text.isalpha())
        patterns.insert(1 + [name for name, _ in patterns].index("ID"), ("MARK", f"[{marks}]"))
        json = _Scanner([*(pair for pair in patterns if pair[0] not in _OUTSIDE_JSON), *MISFITS])
        plain = _Scanner([*(pair for pair in patterns if pair[0] not in _INSIDE_JSON), *MISFITS])
        self._by_state = {state: json if "JSON_STRING" in accepted else plain for state, accepted in states.items()}

    def lex(
        self, text: str, start: int, states: list[int], open_: list[Open], comments: list[Comment]
    ) -> Iterator[Token]:
        """The tokens from an offset on, the end of the text being the last.

        `states` and `open_` are the parser's, and asked before each token: they change while tokens are fed.
        """
        scanners, by_text = self._by_state, self._by_text
        previous_end = at = start
        while True:
            scanner = scanners[states[-1]]
            match = scanner.match(text, at)
            assert match is not None and match.lastindex is not None
            group = match.lastindex
            start, at = match.span(group)
            kind = scanner.kinds[group]
            piece = text[start:at]
            if kind == "ID":
                kind = by_text.get(piece, kind)
            elif kind == "MARK":
                kind = by_text[piece]
                if kind == "LBRACE" and text.find("\n", previous_end, start) >= 0:
                    kind = "BRACE_BELOW"
            elif kind == "ARROW":
                if _BLANK_LINE.search(text, previous_end, start):
                    kind = "LATE_ARROW"
            elif kind == "COMMENT":
                if open_ and open_[-1].what in ("value", "marker"):
                    kind = "COMMENT_IN_VALUE"
                else:
                    comments.append(Comment(piece, Span(start, at)))
                    continue
            yield Token(kind, piece, start, at)
            previous_end = at
            if kind == END:
                return
