"""Text to tree: `parse`. The one module that knows lark.

lark makes the LALR tables from `grammar/weft.lark` and runs them; the tokens come from `lexer.py`, the tree from
`building.py`, the words of an error from `explain.py`, the place to go on after one from `recovery.py`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Iterator
from typing import Any, Final

from lark import Lark
from lark.exceptions import UnexpectedToken

from weft.data import data_folder
from weft.lang import recovery
from weft.lang.building import Builder
from weft.lang.diagnostics import Diagnostic, Source, Span
from weft.lang.explain import explain, never_closed, too_deep
from weft.lang.lexer import Lexer
from weft.lang.scopes import check_scopes
from weft.lang.syntax import Comment, ContainerDecl, File
from weft.lang.tokens import CLOSERS, END, MAX_NESTING, OPENERS, Open, Token

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


class _Machine:
    """The tables, and the builder that they call."""

    def __init__(self) -> None:
        self.builder = Builder()
        self._lark = Lark(
            (data_folder("grammar") / "weft.lark").read_text(encoding="utf-8"),
            parser="lalr",
            lexer="contextual",
            start="file",
            keep_all_tokens=True,
            maybe_placeholders=True,
            transformer=self.builder,
            _plugins={"ContextualLexer": Lexer},
        )
        self.lexer: Lexer = self._lark.parser.lexer
        self.states: dict[int, dict[str, Any]] = self.start().parse_conf.states
        self.opened = {state: _opened(actions) for state, actions in self.states.items()}

    def start(self) -> Any:
        """A parser that has read nothing."""
        return self._lark.parse_interactive("").parser_state


def _opened(actions: dict[str, Any]) -> str:
    """What a bracket opened, by what may follow it."""
    if "entry" in actions:
        return "body"
    if "element" in actions or "pair" in actions:
        return "value"
    if "type" in actions or "record_field" in actions:
        return "type"
    return "ports" if "port" in actions else "marker"


class _Reading:
    """One pass over one text."""

    def __init__(self, machine: _Machine, source: Source) -> None:
        self._machine = machine
        self._text = source.text
        self._builder = machine.builder
        self._parser = machine.start()
        self._states: list[int] = self._parser.state_stack
        self._values: list[Any] = self._parser.value_stack
        self._open: list[Open] = []
        self._swallowed = False
        """A heredoc that is never closed has taken the rest of the text, closing braces and all."""

    def read(self) -> list[Any]:
        at = 0
        while True:
            token = self._feed(at)
            if token.type == END:
                return self._finish(token)
            at = self._recover(token)

    def _lex(self, at: int) -> Iterator[Token]:
        return self._machine.lexer.lex(self._text, at, self._states, self._open, self._builder.comments)

    def _feed(self, at: int) -> Token:
        """Reads on until a token cannot stand where it stands, or nests too deep, or the text ends: that token."""
        feed = self._parser.feed_token
        open_, states, opened = self._open, self._states, self._machine.opened
        for token in self._lex(at):
            kind = token.type
            if kind == END:
                return token
            try:
                feed(token)
            except UnexpectedToken:
                return token
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
        if self._open and self._open[-1].token is token:
            self._open.pop()
            self._states.pop()
            self._values.pop()
            self._builder.report(too_deep(token))
        else:
            self._builder.report(explain(self._text, self._values, token, self._expected()))
        self._swallowed = self._swallowed or token.type == "OPEN_HEREDOC"
        entry = self._drop_entry()
        at, opens_body = recovery.resume(
            self._text, self._lex(token.start), bad=entry, inside=bool(self._open)
        )
        if opens_body:
            for part in recovery.header(entry, at):
                self._parser.feed_token(part)
        return at

    def _expected(self) -> frozenset[str]:
        """The terminals that may come next."""
        return frozenset(name for name in self._machine.states[self._states[-1]] if name.isupper())

    def _drop_entry(self) -> list[Token]:
        """Takes the unfinished entry off the stacks; gives its tokens that no part was made of yet."""
        states, values = self._machine.states, self._values
        size = len(values)
        while "entry" not in states[self._states[size]]:
            size -= 1
        tokens = [value for value in values[size:] if value.__class__ is Token]
        del values[size:], self._states[size + 1 :]
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
        with contextlib.suppress(UnexpectedToken):
            return self._result(end)
        unclosed = [each.token for each in self._open if each.what != "body"]
        finding = explain(self._text, self._values, end, self._expected()) if not unclosed else None
        entry = self._drop_entry()
        if unclosed:
            self._builder.report(never_closed(self._text, unclosed[-1]))
        elif entry and finding and not self._swallowed:
            self._builder.report(finding)
        self._builder.shape.unclosed = True
        while self._open:
            opener = self._open.pop().token
            if not self._swallowed:
                self._builder.report(never_closed(self._text, opener))
            self._parser.feed_token(Token("RBRACE", "", end.start, end.start))
            self._drop_entry()
        return self._result(end)

    def _result(self, end: Token) -> list[Any]:
        items: list[Any] = self._parser.feed_token(end, True)
        return items
