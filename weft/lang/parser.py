"""Text to tree: `parse`. The one module that knows lark.

lark makes the LALR tables of `grammar/weft.lark` and the calls that build the tree; `tables.py` runs them. The tokens
come from `lexer.py`, the tree from `building.py`, the words of an error from `explain.py`, the place to go on after
one from `recovery.py`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final, Literal

from lark import Lark
from lark import __version__ as lark_version
from lark.parsers.lalr_analysis import Shift

from weft.data import data_folder
from weft.lang.diagnostics import Diagnostic, Source
from weft.lang.parsing import cache, recovery
from weft.lang.parsing.building import Builder
from weft.lang.parsing.explain import explain, never_closed, too_deep
from weft.lang.parsing.lexer import Lexer
from weft.lang.parsing.mistake import Mistake
from weft.lang.parsing.tables import Action, Reduction, Stack, Tables
from weft.lang.parsing.tokens import CLOSERS, END, MAX_NESTING, OPENERS, Open, Token
from weft.lang.syntax import File

_one_at_a_time: Final = threading.Lock()


def parse(source: Source, *, included: bool = False) -> tuple[File, list[Diagnostic]]:
    """The tree of a file and all errors in it, in the order of their places. Raises on no text whatever.

    `included` says that the file was reached through `@include`: then it holds one anonymous group.
    """
    with _one_at_a_time, _collector_paused():
        machine = _machine()
        machine.builder.begin(source, included)
        items = _Reading(machine, source).read()
        return machine.builder.finish(items)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """A tree is built of many objects and no garbage: collections in between would only cost time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@functools.cache
def _machine() -> _Machine:
    return _Machine()


class _Part:
    """What a repetition in the grammar is made of, until the rule around it takes its children."""

    __slots__ = ("children",)

    def __init__(self, name: str, children: list[Any]) -> None:
        self.children = children


class _Machine:
    """The tables, the lexer that reads by them and the builder that they call."""

    def __init__(self) -> None:
        self.builder = Builder()
        lark = _lark(self.builder)
        self.lexer: Lexer = lark.parser.lexer
        self.tables = _tables(lark)
        self.opened = {state: _opened(parts) for state, parts in self.tables.parts.items()}


def _lark(builder: Builder) -> Lark:
    """lark with the grammar's tables, kept on disk since making them takes ten times as long as reading them."""
    grammar = (data_folder("grammar") / "weft.lark").read_text(encoding="utf-8")
    name = _cache_name(grammar)
    options: dict[str, Any] = {
        "transformer": builder,
        "tree_class": _Part,
        "_plugins": {"ContextualLexer": Lexer},
    }
    if kept := cache.load(name):
        # Bytes that are what was stored may still be of a lark whose insides changed without a new version.
        with contextlib.suppress(Exception):
            lark: Lark = Lark.__new__(Lark)._load(io.BytesIO(kept), **options)
            return lark
    lark = Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="file",
        keep_all_tokens=True,
        maybe_placeholders=True,
        **options,
    )
    made = io.BytesIO()
    lark.save(made, exclude_options=options)
    cache.store(name, made.getvalue())
    return lark


def _cache_name(grammar: str) -> str:
    made_of = f"{lark_version} {sys.version_info[:2]} {grammar}"
    return f"grammar-{hashlib.sha256(made_of.encode()).hexdigest()[:32]}"


def _tables(lark: Lark) -> Tables:
    """lark's tables in a form that is quick to run: plain words for keys, each reduction looked up once."""
    conf: Any = lark.parse_interactive("").parser_state.parse_conf
    follow: dict[str, dict[int, int]] = {}
    for state, moves in conf.states.items():
        for name, (move, target) in moves.items():
            if move is Shift:
                follow.setdefault(str(name), {})[state] = target
    reductions = {
        rule: Reduction(len(rule.expansion), build, follow[str(rule.origin.name)])
        for rule, build in conf.callbacks.items()
    }
    actions: dict[int, dict[str, Action]] = {}
    parts: dict[int, frozenset[str]] = {}
    for state, moves in conf.states.items():
        actions[state] = {
            str(name): target if move is Shift else reductions[target]
            for name, (move, target) in moves.items()
            if not (move is Shift and name.islower())
        }
        parts[state] = frozenset(str(name) for name, (move, _) in moves.items() if move is Shift and name.islower())
    return Tables(actions, parts, conf.start_state, conf.end_state)


def _opened(parts: frozenset[str]) -> str:
    """What a bracket opened, by what may follow it."""
    if "entry" in parts:
        return "body"
    if "element" in parts or "pair" in parts:
        return "value"
    if "type" in parts or "record_field" in parts:
        return "type"
    return "ports" if "port" in parts else "marker"


class _Reading:
    """One pass over one text."""

    def __init__(self, machine: _Machine, source: Source) -> None:
        self._machine = machine
        self._source = source
        self._text = source.text
        self._builder = machine.builder
        self._stack = Stack(machine.tables)
        self._open: list[Open] = []
        self._previous: Token | None = None
        self._swallowed = False
        """One mistake, already reported, has taken the rest of the text, closing braces and all."""

    def read(self) -> list[Any]:
        at = 0
        while True:
            token = self._feed(at)
            if token.type == END:
                return self._finish(token)
            at = self._recover(token)

    def _lex(self, at: int) -> Iterator[Token]:
        return self._machine.lexer.lex(self._text, at, self._stack.states, self._open, self._builder.comments)

    def _feed(self, at: int) -> Token:
        """Reads on until a token cannot stand where it stands, or nests too deep, or the text ends: that token."""
        feed, states = self._stack.feed, self._stack.states
        open_, opened = self._open, self._machine.opened
        previous: Token | None = None
        for token in self._lex(at):
            kind = token.type
            if kind == END or not feed(token):
                self._previous = previous
                return token
            previous = token
            if kind in OPENERS:
                what = opened[states[-1]]
                depth = open_[-1].depth + 1 if open_ and open_[-1].what == what else 1
                open_.append(Open(token, what, depth))
                if depth > MAX_NESTING:
                    return token
            elif kind in CLOSERS:
                open_.pop()
        raise AssertionError("the lexer ends with an end token")

    # --- after an error -----------------------------------------------------------------------------------

    def _recover(self, token: Token) -> int:
        """Reports the token, drops its entry, and gives the offset to go on from."""
        nests_too_deep = bool(self._open) and self._open[-1].token is token
        if nests_too_deep:
            self._open.pop()
            self._stack.cut(len(self._stack.values) - 1)
            self._builder.report(too_deep(token))
        else:
            mistake = self._mistake(token)
            self._builder.report(explain(mistake))
            if mistake.entry and mistake.at_entry and not mistake.belongs_to_header:
                self._stack.feed(Token("COMMA", ",", token.start, token.start))
        self._swallowed = self._swallowed or token.type == "OPEN_HEREDOC"
        entry = self._drop_entry()
        at, opens_body = recovery.resume(
            self._text, self._lex(token.start), bad=entry, inside=bool(self._open), whole=nests_too_deep
        )
        self._swallowed = self._swallowed or (nests_too_deep and at == len(self._text))
        if opens_body:
            for part in recovery.header(entry, at):
                self._stack.feed(part)
        return at

    def _entry_start(self) -> int:
        """Where on the stack the unfinished entry begins."""
        parts, states = self._machine.tables.parts, self._stack.states
        size, closed = len(states) - 1, 0
        while closed or "entry" not in parts[states[size]]:
            if not closed and self._is(size - 1, "COMMA") and "entry" in parts[states[size - 1]]:
                break
            size -= 1
            closed += self._is(size, "RBRACE")
            closed -= closed > 0 and self._is(size, "LBRACE", "BRACE_BELOW")
        return size

    def _mistake(self, token: Token) -> Mistake:
        wanted = self._stack.acceptable()
        values, start = self._stack.values, self._entry_start()
        before = values[start - 1] if start else None
        last = before.children[-1] if isinstance(before, _Part) else before
        return Mistake(
            self._source,
            token,
            self._previous,
            values[start:],
            last,
            self._open[-1] if self._open else None,
            self._owner(start),
            wanted,
        )

    def _owner(self, start: int) -> Literal["file", "node", "group", "loop"]:
        """Whose braces are around the entry that begins there."""
        for at in range(start - 1, -1, -1):
            if self._is(at, "LBRACE"):
                for before in (at - 1, at - 2):
                    if self._is(before, "GROUP"):
                        return "group"
                    if self._is(before, "LOOP"):
                        return "loop"
                return "node"
        return "file"

    def _is(self, at: int, *kinds: str) -> bool:
        """Whether that place of the stack holds a token of one of these types."""
        return at >= 0 and (value := self._stack.values[at]).__class__ is Token and value.type in kinds

    def _drop_entry(self) -> list[Token]:
        """Takes the unfinished entry off the stack; gives its tokens that no part was made of yet."""
        tokens = [part for part in self._stack.cut(self._entry_start()) if part.__class__ is Token]
        still_open = len(self._open)
        for token in tokens:
            still_open -= token.type in OPENERS
            still_open += token.type in CLOSERS
        del self._open[still_open:]
        if tokens and tokens[0].type == "ID":
            self._builder.lost.add(tokens[0].text)
        return tokens

    def _finish(self, end: Token) -> list[Any]:
        """Ends the text, closing what is still open."""
        if not self._stack.finish(end):
            self._close_all(end)
            if not self._stack.finish(end):
                self._drop_entry()
                self._stack.finish(end)
        items: list[Any] = self._stack.values[0]
        return items

    def _close_all(self, end: Token) -> None:
        unclosed = [each.token for each in self._open if each.what != "body"]
        finding = explain(self._mistake(end)) if not unclosed else None
        entry = self._drop_entry()
        if unclosed:
            self._builder.report(never_closed(self._source, unclosed[-1]))
        elif entry and finding and not self._swallowed:
            self._builder.report(finding)
        explained = self._builder.shape.missing_braces
        self._builder.shape.unclosed = True
        brace = Token("RBRACE", "", end.start, end.start)
        while self._open:
            if explained:
                explained -= 1
            elif not self._swallowed:
                self._builder.report(never_closed(self._source, self._open[-1].token))
            if not self._stack.feed(brace):
                self._drop_entry()
                self._stack.feed(brace)
            self._open.pop()
