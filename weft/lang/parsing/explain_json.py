"""Mistakes inside lists and objects, where JSON's rules hold."""

from __future__ import annotations

from weft.lang.diagnostics import Span
from weft.lang.parsing.mistake import Finding, Mistake, span_of
from weft.lang.parsing.tokens import END
from weft.lang.parsing.words import LOOK_ALIKES, found


def inside_json(it: Mistake) -> Finding | None:
    if it.opener is None or it.opener.what != "value" or it.kind == END:
        return None
    if "JSON_NUMBER" in it.wanted:
        return _element(it)
    if "JSON_STRING" in it.wanted:
        return _key(it)
    if "COLON" in it.wanted:
        return it.here(f"expected ':' after the key {found(it.previous)}, {it.but}" if it.previous else "expected ':'")
    return _separator(it)


def _what(it: Mistake) -> str:
    return "a list" if it.opener and it.opener.token.type == "LSQB" else "an object"


def _after_comma(it: Mistake) -> bool:
    return it.previous is not None and it.previous.type == "COMMA"


def _element(it: Mistake) -> Finding:
    text = it.token.text
    if it.kind == "PATH":
        return Finding(
            span_of(it.token),
            f"`{text}` reads another node, and {_what(it)} holds written values only",
            "declare one port for each value, or build the value with a node such as List or JsonObject",
        )
    if it.kind in ("ID", "GROUP", "LOOP", "TYPE"):
        if meant := LOOK_ALIKES.get(text):
            return Finding(span_of(it.token), f"`{text}` is no value: write `{meant}`")
        return Finding(
            span_of(it.token), f'`{text}` is no value: inside {_what(it)} a text stands in double quotes, `"{text}"`'
        )
    if it.kind in ("RSQB", "RBRACE") and _after_comma(it):
        return _needless_comma(it)
    if it.kind == "HEREDOC":
        return Finding(
            span_of(it.token), f"inside {_what(it)} a text stands in double quotes, and a line end in it is written \\n"
        )
    if it.kind in ("RSQB", "RBRACE", "COMMA"):
        return Finding(span_of(it.token), f"a value is missing before '{text}'")
    return Finding(span_of(it.token), f"expected a value inside {_what(it)}, not {found(it.token)}")


def _key(it: Mistake) -> Finding:
    if it.kind == "RBRACE" and _after_comma(it):
        return _needless_comma(it)
    text = it.token.text
    if text.isidentifier():
        return Finding(span_of(it.token), f'the keys of an object stand in double quotes: write `"{text}": …`')
    return Finding(span_of(it.token), f'expected a key in double quotes, as in `"key": …`, not {found(it.token)}')


def _needless_comma(it: Mistake) -> Finding:
    assert it.previous is not None
    return Finding(span_of(it.previous), f"nothing stands between this ',' and '{it.token.text}': take the ',' away")


def _separator(it: Mistake) -> Finding:
    close = "]" if it.opener and it.opener.token.type == "LSQB" else "}"
    before = it.previous or it.token
    if it.kind in ("RSQB", "RBRACE"):
        return Finding(span_of(it.token), f"{_what(it)} that is open here ends with '{close}', not '{it.token.text}'")
    return Finding(Span(before.start, before.end), f"expected ',' or '{close}' after {found(before)}, {it.but}")
