"""The LALR machine: actions by state and terminal, two stacks, and what may come next.

The tables are the grammar's, made elsewhere; the parts on the value stack are whatever the reductions build.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.lang.parsing.tokens import Token


class Reduction(NamedTuple):
    """Takes `size` parts off the stack and puts one on; `follow` is the state after it, by the state uncovered."""

    size: int
    build: Callable[[list[Any]], Any]
    follow: dict[int, int]


Action = int | Reduction
"""A shift is the number of the next state."""


class Tables(NamedTuple):
    """`actions` by state and terminal; `parts` by state: the rules whose part may come next there."""

    actions: dict[int, dict[str, Action]]
    parts: dict[int, frozenset[str]]
    start: int
    end: int


class Stack:
    """Where a parse stands."""

    __slots__ = ("_actions", "_end", "states", "values")

    def __init__(self, tables: Tables) -> None:
        self._actions = tables.actions
        self._end = tables.end
        self.states = [tables.start]
        self.values: list[Any] = []

    def feed(self, token: Token) -> bool:
        """Takes one token in; says no, leaving it out, where it cannot stand. Reductions before it have happened."""
        actions, states, values = self._actions, self.states, self.values
        kind = token.type
        while True:
            action = actions[states[-1]].get(kind)
            if isinstance(action, int):
                states.append(action)
                values.append(token)
                return True
            if action is None:
                return False
            size, build, follow = action
            if size:
                parts = values[-size:]
                del values[-size:], states[-size:]
            else:
                parts = []
            values.append(build(parts))
            states.append(follow[states[-1]])

    def finish(self, end: Token) -> bool:
        """Ends the text; the whole is then the one value."""
        self.feed(end)
        return self.states[-1] == self._end

    def cut(self, size: int) -> list[Any]:
        """Takes the parts from number `size` on off the stack."""
        taken = self.values[size:]
        del self.values[size:], self.states[size + 1 :]
        return taken

    def acceptable(self) -> set[str]:
        """The terminals that may come next."""
        return {kind for kind in self._actions[self.states[-1]] if self._accepts(kind)}

    def _accepts(self, kind: str) -> bool:
        states = self.states[:]
        while True:
            action = self._actions[states[-1]].get(kind)
            if action is None:
                return False
            if isinstance(action, int):
                return True
            if action.size:
                del states[-action.size :]
            states.append(action.follow[states[-1]])
