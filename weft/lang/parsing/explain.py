"""What to say about a token that cannot stand where it stands: in a person's words, never the grammar's.

`explain` asks small cases in order, the surest first; the last one lists what could have stood there. Inside lists and
objects other habits lead to mistakes than outside, so their cases are in `explain_json.py`.
"""

from __future__ import annotations

import re
from typing import Final

from weft.lang.diagnostics import Source, Span, nearest
from weft.lang.parsing.explain_json import inside_json
from weft.lang.parsing.mistake import Finding, Mistake, span_of
from weft.lang.parsing.shape import DECLARATIONS
from weft.lang.parsing.tokens import BRACES, CLOSERS, END, MARKERS, MAX_NESTING, Token
from weft.lang.parsing.words import LOOK_ALIKES, character, expected, found
from weft.lang.syntax import ContainerDecl, NodeDecl

_WRITTEN: Final = frozenset(
    {
        *("STRING", "HEREDOC", "NUMBER", "JSON_STRING", "JSON_NUMBER", "BAD_NUMBER"),
        *("TRUE", "FALSE", "NULL", "LSQB", "FILE", "ASSET"),
    }
)
_KEYWORDS: Final = frozenset({"GROUP", "LOOP", "TRUE", "FALSE", "NULL"})
_MARKERS: Final = ("file", "asset", "include", "require_one_of", "instance_filled")


def too_deep(opener: Token) -> Finding:
    return Finding(
        span_of(opener),
        f"brackets nest deeper than {MAX_NESTING} levels here",
        "a deep value can be built by nodes, and groups can be moved into files of their own",
        "nesting-too-deep",
    )


def never_closed(source: Source, opener: Token) -> Finding:
    return Finding(span_of(opener), f"this {found(opener)} is never closed: {file_end(source)}")


def file_end(source: Source) -> str:
    line, _ = source.position(len(source.text.rstrip()))
    return f"the file ends at line {line}"


def explain(mistake: Mistake) -> Finding:
    """Why the mistake's token cannot stand where it stands."""
    for ask in _CASES:
        if finding := ask(mistake):
            return finding
    return _anything_else(mistake)


# --- what is wrong by itself ------------------------------------------------------------------------------


def _never_closed_text(it: Mistake) -> Finding | None:
    start = it.token.start
    if it.kind == "OPEN_STRING":
        line, _ = it.source.position(start)
        return Finding(
            Span(start, start + 1),
            f"this text is never closed: a '\"' is missing before line {line} ends",
            "a text of several lines stands between three backticks",
        )
    if it.kind == "OPEN_HEREDOC":
        return Finding(
            Span(start, start + 3),
            f"this text is never closed: three backticks are missing, and {file_end(it.source)}",
        )
    return None


def _marker(it: Mistake) -> Finding | None:
    if it.kind == "BAD_MARKER":
        return _unknown_marker(it)
    if it.kind == "INCLUDE":
        return it.here("`@include` declares a part: it stands after a name and '=', as in `part = @include(…)`")
    if it.kind in ("FILE", "ASSET") and it.entry_is("ID", "EQUAL"):
        name, marker = it.entry[0].text, f"{it.token.text}…)"
        return it.here(f"`{marker}` is a value, and a declaration names a type: `{name} = Text {{ value: {marker} }}`")
    return None


def _unknown_marker(it: Mistake) -> Finding:
    name = it.token.text.strip("@(")
    if name in _MARKERS and not it.token.text.endswith("("):
        return it.here(f"the parenthesis touches the name of its marker: `@{name}(…)`")
    if name == "per_instance":
        return it.here("`@per_instance` takes nothing in parentheses")
    near = nearest(name, _MARKERS)
    known = "there are " + ", ".join(f"`@{each}(…)`" for each in _MARKERS[:4])
    return it.here(f"there is no marker `@{name}`", f"did you mean `@{near}(…)`?" if near else known)


def _character(it: Mistake) -> Finding | None:
    if it.kind == "COMMENT_IN_VALUE":
        return Finding(span_of(it.token), "no comment stands inside a list, an object or the parentheses of a marker")
    if it.kind != "BAD_CHARACTER":
        return None
    before = it.previous
    if it.token.text == "-" and before and before.type in ("ID", "PATH") and before.end == it.token.start:
        name = _DASHED_NAME.match(it.text, before.start)
        if name:
            return Finding(
                Span(*name.span()),
                f"a name holds letters, digits and '_' but no '-': write `{name[0].replace('-', '_')}`",
            )
    return Finding(span_of(it.token), character(it.token))


_DASHED_NAME: Final = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_]|[A-Za-z0-9_.]+-")


def _number(it: Mistake) -> Finding | None:
    """Numbers that are none, and numbers where a name should be."""
    text = it.token.text
    awaits_value = "NUMBER" in it.wanted or "JSON_NUMBER" in it.wanted
    if it.kind == "DOT" and awaits_value:
        return it.here("a number begins with a digit: write `0.5`, not `.5`")
    if it.kind not in ("BAD_NUMBER", "NUMBER") or it.entry_is("ID", "EQUAL"):
        return None
    if it.previous and it.previous.end == it.token.start and it.previous.type in ("PATH", "ID"):
        return it.here(f"{found(it.token)} is no name: each part of a path begins with a letter or '_'")
    if not awaits_value:
        if "ID" in it.wanted and not it.at_entry:
            return it.here(f"{found(it.token)} is no name: a name begins with a letter or '_'")
        return None
    if text.startswith("+"):
        return it.here(f"a number has no '+': write `{text[1:]}`")
    if text.endswith("."):
        return it.here(f"a number does not end with '.': write `{text[:-1]}` or `{text}0`")
    if "JSON_NUMBER" in it.wanted and text.lstrip("-").replace(".", "", 1).isdigit():
        return it.here(f"inside a list or an object a number has no leading zero: write `{text.lstrip('0')}`")
    if "e" in text.lower() and text.lower().translate(_EXPONENT).isdigit():
        return it.here(
            f"`{text}` has an exponent: write the number out", "inside a list or an object exponents are allowed"
        )
    return it.here(
        f"{found(it.token)} is no number: it is digits, perhaps with '-' before them and one '.' between",
        "a text stands in double quotes",
    )


_EXPONENT: Final = str.maketrans("", "", "e+-.")


def _never_closed_bracket(it: Mistake) -> Finding | None:
    """A bracket that the next line shows to be left open."""
    if it.opener is None or it.opener.token.type in MARKERS or (following := it.next_entry) is None:
        return None
    line, _ = it.source.position(following.start)
    opener = it.opener.token
    return Finding(span_of(opener), f"this {found(opener)} is never closed: line {line} begins something new")


# --- what is wrong in its place ---------------------------------------------------------------------------


def _unquoted_value(it: Mistake) -> Finding | None:
    """`key: raw`: the name was taken for the beginning of a node in the place of a value."""
    if not (it.entry_is("ID", "COLON", "ID") or it.entry_is("PATH", "EQUAL", "ID")) or it.kind in _LEFT_TO_OTHERS:
        return None
    word = it.entry[2]
    if meant := LOOK_ALIKES.get(word.text):
        return Finding(span_of(word), f"`{word.text}` is no value: write `{meant}`")
    return Finding(
        span_of(word),
        f'`{word.text}` is no value: a text stands in double quotes, as in `"{word.text}"`',
        "a value of another node is written `node.port`",
    )


_LEFT_TO_OTHERS: Final = ("OPEN_STRING", "OPEN_HEREDOC", "DOT")


def _marker_argument(it: Mistake) -> Finding | None:
    if it.opener is None or it.opener.token.type not in MARKERS:
        return None
    marker = it.opener.token
    if it.line_ended:
        end = f", and {file_end(it.source)}" if it.kind == END else ""
        return Finding(span_of(marker), f"the parenthesis of `{marker.text[:-1]}` is not closed on its line{end}")
    if "RPAR" in it.wanted and it.kind in ("RBRACE", "RSQB", "COLON", "EQUAL"):
        return Finding(span_of(marker), f"the parenthesis of `{marker.text[:-1]}` is not closed, {it.but}")
    if it.wanted == {"STRING"}:
        return it.here(f"`{marker.text}…)` takes a path in double quotes, {it.but}")
    return None


def _inline_output(it: Mistake) -> Finding | None:
    """`key: Text { … }` without the output that is taken, or with more than that."""
    if "DOT" in it.wanted and len(it.entry) > 2:
        head = it.entry[2]
        type_: Token = head[0] if isinstance(head, list) else head
        name = it.entry[0]
        if it.owner == "file" and name.type == "ID":
            return Finding(span_of(it.entry[1]), f"a node is declared with '=': write `{name.text} = {type_.text} …`")
        return Finding(
            span_of(type_),
            f"a node in the place of a value says which output is taken: `{type_.text} {{ … }}.output`, {it.but}",
        )
    if it.previous and it.previous.type == "DOT":
        if it.kind == "PATH":
            output = it.token.text.split(".")[0].strip()
            return it.here(
                f"a node in the place of a value gives the whole of `.{output}`: its keys cannot be read here",
                "declare the node by itself and wire `node.port.key`",
            )
        return it.here(f"the name of an output comes after '.', {it.but}")
    return None


def _question_mark(it: Mistake) -> Finding | None:
    if it.kind != "QMARK" or it.opener is None:
        return None
    name = it.named_before_colon()
    if name is None or it.opener.what not in ("ports", "type"):
        return None
    return it.here(f"the '?' stands after the name, not after the type: write `{name.text}?: …`")


def _late_part(it: Mistake) -> Finding | None:
    """An arrow or a brace that comes too late for its header."""

    def at(message: str) -> Finding:
        return Finding(span_of(it.token), message)

    after = it.last_part
    if it.kind in ("ARROW", "LATE_ARROW"):
        closed = it.previous is not None and it.previous.type == "RBRACE"
        if closed or (it.at_entry and isinstance(after, NodeDecl | ContainerDecl) and _has_body(it, after)):
            return at("outputs stand before the braces: `name = Type(…) -> (…) { … }`")
        if it.kind == "LATE_ARROW":
            return at("'->' stands on the line of its header or on the very next one, not after a blank line")
        return at("'->' stands between a type or its inputs and the outputs: `name = Type(…) -> (…)`")
    if it.kind == "BRACE_BELOW" and "LBRACE" in it.wanted:
        return at("the opening '{' stands on the line where the header ends")
    return None


def _has_body(it: Mistake, declared: NodeDecl | ContainerDecl) -> bool:
    return it.text[declared.span.end - 1] == "}"


def _keyword_as_name(it: Mistake) -> Finding | None:
    word = it.token.text
    if it.kind in _KEYWORDS and "ID" in it.wanted and "NUMBER" not in it.wanted and not it.entry_is("ID", "EQUAL"):
        if it.kind == "LOOP" and it.at_entry and it.owner != "node":
            return it.here("a loop needs a name, as in `each = Loop(…) { … }`", "`Loop` itself is a reserved word")
        kind = "a value" if it.kind in ("TRUE", "FALSE", "NULL") else "a reserved word"
        return it.here(f"`{word}` is {kind} and cannot be a name: choose another")
    if it.kind in ("EQUAL", "EQUAL_AT_LINE_END", "COLON") and it.entry_is("GROUP"):
        return Finding(span_of(it.entry[0]), "`Group` is a reserved word and cannot be a name: choose another")
    return None


def _declaration(it: Mistake) -> Finding | None:
    if it.kind == "EQUAL_AT_LINE_END":
        if it.entry_is("PATH"):
            return it.here("a value is missing after '=': it begins on the same line")
        if it.entry:
            return it.here("a type is missing after '=': it stands on the same line, as in `name = Text { … }`")
    if it.entry_is("ID", "EQUAL"):
        name = it.entry[0].text
        if it.kind == "PATH":
            return it.here(
                f"`{it.token.text}` is a wire, and a wire leads to a port: `node.port = {it.token.text}`",
                f"`{name} = …` declares a node, and then names its type",
            )
        if it.kind in _WRITTEN:
            shown = it.token.text if it.kind in ("NUMBER", "TRUE", "FALSE", "NULL") else "…"
            return it.here(
                f"a value stands in a node: `{name} = Text {{ value: {shown} }}`", "'=' declares a node by its type"
            )
        return it.here(f"a type is missing after `{name} =`, as in `{name} = Text {{ … }}`")
    if it.entry_is("ID", "EQUAL", "ID/GROUP/LOOP") and not it.line_ended:
        type_ = it.entry[2].text
        return it.here(f"expected '(', '->', '{{' or the end of the line after `{type_}`, {it.but}")
    if it.entry_is("TYPE") and it.kind in (*_KEYWORDS, "ID"):
        return it.here(f"`{it.token.text}` is a reserved word and cannot be the name of a type")
    return None


def _start_of_line(it: Mistake) -> Finding | None:
    if not it.at_entry:
        return None
    shown = it.token.text
    if it.kind in ("EQUAL", "EQUAL_AT_LINE_END"):
        return it.here("a name is missing before '=', as in `name = Text { … }`")
    if it.kind == "COLON":
        return it.here("a name is missing before ':', as in `name: \"value\"`")
    if it.kind in CLOSERS:
        return it.here(f"this '{shown}' closes nothing")
    if it.kind in BRACES:
        if isinstance(it.last_part, NodeDecl | ContainerDecl) and it.text[it.last_part.span.end - 1] != "}":
            return it.here("the opening '{' stands on the line where the header ends")
        return it.here("a '{' opens the braces of a node, a group or a loop: its header is missing, `name = Type {`")
    if it.kind == "VBAR":
        return it.here("a type ends at its line end: write the whole union on one line")
    if it.kind == "DOT":
        after = it.previous.type in ("ID", "PATH") and it.previous.end == it.token.start if it.previous else False
        return it.here(f"a name is missing {'after' if after else 'before'} '.', as in `node.port`")
    if it.kind == "LSQB" and it.previous is not None and it.previous.type == "PATH":
        return it.here(
            "a wire reads keys by their names, and the items of a list have none", "ExecPython can take one out"
        )
    if it.kind in _WRITTEN or it.kind == "INSTANCE_FILLED":
        return it.here(f"{found(it.token)} is a value, and what it is for is missing: `name: …` or `node.port = …`")
    return it.here(f"a line begins with a name, {it.but}", "such as `name = Type { … }` or `node.port = value`")


def _after_name(it: Mistake) -> Finding | None:
    if it.entry_is("PATH"):
        if it.kind == "DOT":
            return it.here("a name is missing after '.'")
        if it.kind == "COLON":
            return it.here(f"a value for a port is given with '=': `{it.entry[0].text} = …`")
        return it.here(f"expected '=' after `{it.entry[0].text}`, {it.but}")
    if not it.entry_is("ID"):
        return None
    name = it.entry[0].text
    if it.kind == "DOT":
        return it.here(f"a name is missing after `{name}.`")
    if isinstance(it.last_part, DECLARATIONS) and it.text.find("\n", it.last_part.span.end, it.entry[0].start) < 0:
        return Finding(span_of(it.entry[0]), f"`{name}` cannot follow here: a declaration ends at its line end")
    if it.owner == "node":
        return it.here(f"expected ':' after `{name}`, {it.but}")
    if it.owner == "file":
        return it.here(f"expected '=' after `{name}`, {it.but}")
    return it.here(f"expected '=' or ':' after `{name}`, {it.but}")


def _missing_value(it: Mistake) -> Finding | None:
    if not (it.entry_is("ID", "COLON") or it.entry_is("PATH", "EQUAL") or it.entry_is("ID", "QMARK", "COLON")):
        return None
    key = it.entry[0].text
    if it.kind in (*CLOSERS, "COMMA", END) or it.line_ended:
        return it.here(f"the value of `{key}` is missing, {it.but}")
    if it.kind == "TYPE":
        return it.here("`type` is no value: a text stands in double quotes")
    return it.here(f"{found(it.token)} is no value for `{key}`")


def _anything_else(it: Mistake) -> Finding:
    if it.kind == END and it.opener is not None and it.opener.what != "body":
        return never_closed(it.source, it.opener.token)
    if it.opener is not None and it.opener.what == "ports" and it.kind == "EQUAL":
        return it.here("an input takes no value in its signature: write it in the braces, `{ name: value }`")
    if it.previous is not None and it.kind == "DOT" and it.previous.type in ("ID", "PATH"):
        return it.here(f"a name is missing after `{it.previous.text}.`")
    if it.opener is not None and it.opener.what == "type" and it.kind == "RBRACE" and it.entry[-1] is it.opener.token:
        return it.here("a record has at least one field, as in `{ name: String }`", "any object at all is a JsonDict")
    phrase = expected(it.wanted)
    if it.previous is not None:
        return it.here(f"expected {phrase} after {found(it.previous)}, {it.but}")
    return it.here(f"expected {phrase}, {it.but}")


_CASES: Final = (
    _never_closed_text,
    _never_closed_bracket,
    _unquoted_value,
    _marker,
    _character,
    _marker_argument,
    _number,
    inside_json,
    _inline_output,
    _question_mark,
    _late_part,
    _keyword_as_name,
    _declaration,
    _start_of_line,
    _after_name,
    _missing_value,
)
