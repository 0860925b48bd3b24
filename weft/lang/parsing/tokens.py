"""What the lexer makes and the parser eats. No rule of the language lives here."""

from __future__ import annotations

from typing import Final, NamedTuple

OPENERS: Final = frozenset(
    {
        "LPAR",
        "LSQB",
        "LBRACE",
        "BRACE_BELOW",
        "INCLUDE",
        "ONE_OF",
        "FILE",
        "ASSET",
        "INSTANCE_FILLED_WITH",
    }
)
CLOSERS: Final = frozenset({"RPAR", "RSQB", "RBRACE"})
BRACES: Final = frozenset({"LBRACE", "BRACE_BELOW"})
MARKERS: Final = frozenset({"INCLUDE", "ONE_OF", "FILE", "ASSET", "INSTANCE_FILLED_WITH"})
ENTRY_STARTS: Final = frozenset({"ID", "PATH", "GROUP", "TYPE", "ONE_OF", "PER_INSTANCE"})

MAX_NESTING: Final = 200
"""How deep brackets of one kind may nest: values, types, or bodies in each other."""

END: Final = "$END"
"""The name that lark gives to the end of the text."""


class Token:
    """A piece of the text from `start` to `end`; `type` is a terminal of the grammar, or one that it does not know."""

    __slots__ = ("end", "start", "text", "type")

    def __init__(self, type: str, text: str, start: int, end: int) -> None:
        self.type = type
        self.text = text
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"{self.type}({self.text!r})"


class Open(NamedTuple):
    """A bracket that is open: `what` it opened (body, value, type, ports or marker) and how deep among its kind."""

    token: Token
    what: str
    depth: int
