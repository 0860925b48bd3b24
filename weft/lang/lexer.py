"""Text to tokens, by the parser's state.

The terminals are the grammar's; this module puts them into two regular expressions (one for the states that await
JSON, one for all others), adds the tokens that no rule accepts (so that every character belongs to a token and every
mistake has a place), and settles what depends on line ends. It plugs into lark's slot for a contextual lexer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Protocol

from weft.lang.diagnostics import Span
from weft.lang.syntax import Comment
from weft.lang.tokens import END, Open, Token

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")

# Tried after all terminals of the grammar, in this order.
_MISFITS: Final = (
    ("COMMENT", r"#[^\r\n]*"),
    ("OPEN_STRING", r'"(?:[^"\\\r\n]|\\[^\r\n])*\\?'),
    ("OPEN_HEREDOC", r"```[\s\S]*"),
    ("BAD_NUMBER", r"[+-]?\.?[0-9](?:[eE][+-]|[A-Za-z0-9_.]|[+-](?=[0-9.]))*"),
    ("BAD_MARKER", r"@[A-Za-z_][A-Za-z0-9_-]*\(?"),
    (END, r"\Z"),
    ("BAD_CHARACTER", r"[\s\S]"),
)


class _Terminal(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def pattern(self) -> Any: ...


class _Conf(Protocol):
    @property
    def terminals(self) -> Collection[Any]: ...


class _Scanner:
    """One regular expression for all tokens of a mode."""

    __slots__ = ("match", "names")

    def __init__(self, terminals: Sequence[tuple[str, str]]) -> None:
        self.match = re.compile(
            r"[ \t\r\n]*(?:" + "|".join(f"({pattern})" for _, pattern in terminals) + ")"
        ).match
        self.names = ("", *(name for name, _ in terminals))


class Lexer:
    """The terminals of the grammar, ready to read any text; holds nothing of the text that it reads."""

    def __init__(self, conf: _Conf, states: dict[int, Collection[str]], always_accept: Collection[str] = ()) -> None:
        ordered = sorted(conf.terminals, key=lambda terminal: (-terminal.priority, -terminal.pattern.max_width))
        patterns = [
            (terminal.name, terminal.pattern.to_regexp()) for terminal in ordered if terminal.name != "BRACE_BELOW"
        ]
        self._json = _Scanner([pair for pair in patterns if pair[0] not in ("STRING", "NUMBER")] + list(_MISFITS))
        self._plain = _Scanner(
            [pair for pair in patterns if pair[0] not in ("JSON_STRING", "JSON_NUMBER")] + list(_MISFITS)
        )
        self._by_state = {
            state: self._json if "JSON_STRING" in accepted else self._plain for state, accepted in states.items()
        }

    def lex(
        self, text: str, start: int, states: list[int], open_: list[Open], comments: list[Comment]
    ) -> Iterator[Token]:
        """The tokens from an offset on, the end of the text being the last.

        `states` and `open_` are the parser's, and asked before each token: they change while tokens are fed.
        """
        by_state = self._by_state
        previous_end = at = start
        find = text.find
        while True:
            scanner = by_state[states[-1]]
            match = scanner.match(text, at)
            assert match is not None
            group = match.lastindex
            assert group is not None
            start, at = match.span(group)
            kind = scanner.names[group]
            if kind == "COMMENT":
                if open_ and open_[-1].what in ("value", "marker"):
                    yield Token("COMMENT_IN_VALUE", text[start:at], start, at)
                    continue
                comments.append(Comment(text[start:at], Span(start, at)))
                continue
            if kind == "LBRACE":
                if find("\n", previous_end, start) >= 0:
                    kind = "BRACE_BELOW"
            elif kind == "EQUAL":
                if _ends_line(text, at):
                    kind = "EQUAL_AT_LINE_END"
            elif kind == "ARROW" and _BLANK_LINE.search(text, previous_end, start):
                kind = "LATE_ARROW"
            previous_end = at
            yield Token(kind, text[start:at], start, at)
            if kind == END:
                return


_REST: Final = re.compile(r"[ \t\r]*(?:[#\n]|\Z)")


def _ends_line(text: str, at: int) -> bool:
    return _REST.match(text, at) is not None
