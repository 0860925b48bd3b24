"""How tokens are called when a person is spoken to: what was found, what was expected, why a character is none."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Final

from weft.lang.parsing.tokens import END, ENTRY_STARTS, Token

LOOK_ALIKES: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "TRUE": "true",
    "FALSE": "false",
    "NULL": "null",
    "nil": "null",
    "undefined": "null",
}
"""How other languages write weft's words."""

_LONGEST: Final = 32

_PLAIN: Final = frozenset({"TRUE", "FALSE", "NULL", "FILE", "ASSET", "LSQB", "LBRACE", "BRACE_BELOW"})
_VALUE: Final = _PLAIN | {"STRING", "HEREDOC", "NUMBER", "PATH", "INSTANCE_FILLED", "INSTANCE_FILLED_WITH"}
_INLINE: Final = frozenset({"ID", "GROUP", "LOOP"})
_ELEMENT: Final = _PLAIN | {"JSON_STRING", "JSON_NUMBER"}
_TYPE: Final = frozenset({"ID", "LPAR", "LBRACE", "BRACE_BELOW"})

_ORDER: Final = {
    "COLON": "':'",
    "EQUAL": "'='",
    "COMMA": "','",
    "VBAR": "'|'",
    "QMARK": "'?'",
    "DOT": "'.'",
    "ARROW": "'->'",
    "LPAR": "'('",
    "LSQB": "'['",
    "LBRACE": "'{'",
    "RPAR": "')'",
    "RSQB": "']'",
    "RBRACE": "'}'",
    "ID": "a name",
    "STRING": "a path in double quotes",
    "JSON_STRING": "a key in double quotes",
    "GROUP": "`Group`",
    "LOOP": "`Loop`",
    "ONE_OF": "`@require_one_of(…)`",
}


def expected(kinds: Collection[str]) -> str:
    """What may stand there, as a person would list it."""
    rest = set(kinds)
    phrases: list[str] = []
    if {"STRING", "NUMBER"} <= rest or {"JSON_STRING", "JSON_NUMBER"} <= rest:
        rest -= _VALUE | _ELEMENT | _INLINE
        phrases.append("a value")
    elif rest >= ENTRY_STARTS:
        rest -= ENTRY_STARTS
        phrases.append("a new line of the program")
    elif rest >= _TYPE:
        rest -= _TYPE
        phrases.append("a type")
    if "BRACE_BELOW" in rest:
        rest.add("LBRACE")
    phrases += [phrase for kind, phrase in _ORDER.items() if kind in rest]
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"


def found(token: Token) -> str:
    """A token as it is written, shortened to what fits a line."""
    if token.type == END:
        return "the end of the file"
    shown = token.text.splitlines()[0] if token.text.strip() else token.text
    if len(shown) > _LONGEST or shown != token.text:
        shown = shown[:_LONGEST] + "…"
    if "`" in shown or not shown.isprintable():
        return "this" if token.type != "BAD_CHARACTER" else "this character"
    return f"`{shown}`"


_CHARACTERS: Final = {
    "\u00a0": "a non-breaking space is no blank here: put an ordinary space in its place",
    "\ufeff": "the text begins with a byte order mark: save the file without one",
    "'": "a text stands in double quotes, not in single ones",
    "`": "one backtick means nothing: three of them open and close a text of several lines",
    ";": "no ';' is needed: a line ends at its end",
    "-": "'-' stands before the digits of a number, or in '->', and nowhere else",
    "@": "a '@' begins a marker and touches its name, as in `@file(…)`",
    "/": "a comment begins with '#'",
    "$": "'$' means nothing here: a value of another node is written `node.port`",
}
_QUOTES: Final = "“”„‟«»"


def character(token: Token) -> str:
    """Why this character cannot stand anywhere."""
    one = token.text
    if message := _CHARACTERS.get(one):
        return message
    if one in _QUOTES:
        return f"a text stands in straight double quotes, and `{one}` is none of them"
    code = f"U+{ord(one):04X}"
    if one.isspace():
        return f"the blank {code} ({unicodedata.name(one, 'unnamed')}) is none here: put an ordinary space in its place"
    if one.isprintable():
        letter = ": names are made of the letters, digits and '_' of ASCII" if one.isalpha() else ""
        return f"the character `{one}` ({code}) means nothing here{letter}"
    return f"the character {code} means nothing in a program: is this a text file?"
