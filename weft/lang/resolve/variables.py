"""What the type variables of each node stand for.

A variable belongs to one node: the same name on several of its ports is one type. Types flow over every wire in both
directions until nothing changes; then written values say what wires left open. A variable inside a union is never
bound through that union. Not here: reporting what stays open (`check/types.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache

from weft.lang.resolve.literals import inferred
from weft.lang.resolve.model import UNKNOWN, Input, Link, Model, Node, Output, holds_unknown
from weft.lang.types import (
    EMPTY,
    MUST_OVERRIDE,
    DictOf,
    ListOf,
    Type,
    Variable,
    is_open,
    substitute,
    walk,
)


class Conflict(Exception):
    """Two ports of a header give one variable two types."""

    def __init__(self, variable: str, first: Type, second: Type) -> None:
        super().__init__(variable)
        self.variable = variable
        self.first = first
        self.second = second


def narrow(node: Node, known: Type, wanted: Type) -> None:
    """Bind the variables of a port's type to what its header makes of it. Raises Conflict."""
    for variable, type_ in _matches(known, wanted):
        before = node.bindings.setdefault(variable, type_)
        if before != type_:
            raise Conflict(variable, before, type_)


@lru_cache(maxsize=4096)
def holds_must_override(type_: Type) -> bool:
    return MUST_OVERRIDE in walk(type_)


def solve(model: Model) -> None:
    """Bind every variable that can be bound, and put what it stands for into the types of the ports."""
    solver = _Solver(model)
    solver.spread(link for link in model.links if _ends_open(link))
    solver.ask_values()
    solver.let_go()


def _ends_open(link: Link) -> bool:
    return (link.output is not None and link.output.open) or (link.input is not None and link.input.open)


def _matches(pattern: Type, other: Type) -> Iterator[tuple[str, Type]]:
    """The variables of `pattern` with what stands in their places in `other`, where that is fully known."""
    pending = [(pattern, other)]
    while pending:
        pattern, other = pending.pop()
        if isinstance(pattern, Variable):
            if not is_open(other):
                yield pattern.name, other
        elif other is UNKNOWN:
            yield from ((part.name, UNKNOWN) for part in walk(pattern) if isinstance(part, Variable))
        elif isinstance(pattern, ListOf) and isinstance(other, ListOf):
            pending.append((pattern.item, other.item))
        elif isinstance(pattern, DictOf) and isinstance(other, DictOf):
            pending += [(pattern.value, other.value), (pattern.key, other.key)]


class _Solver:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._links_of: dict[int, list[Link]] = {}
        self._open_nodes = [
            node
            for node in model.nodes.values()
            if any(port.open for port in node.inputs.values()) or any(port.open for port in node.outputs.values())
        ]
        for node in self._open_nodes:
            if node.bindings:
                _apply(node)
        for link in model.links:
            if _ends_open(link):
                for end in (link.source, link.target):
                    if end is not None:
                        self._links_of.setdefault(id(end), []).append(link)

    def spread(self, links: Iterable[Link]) -> None:
        """Let types flow over these links, and over all that what they bind reaches."""
        queue = deque(links)
        while queue:
            link = queue.popleft()
            if link.keys or link.output is None or link.input is None or link.second():
                continue
            source, target = link.output.type, link.input.type
            if link.input.open and link.target is not None and self._bind(link.target, target, source):
                queue.extend(self._links_of.get(id(link.target), ()))
            if link.output.open and link.source is not None and self._bind(link.source, source, target):
                queue.extend(self._links_of.get(id(link.source), ()))

    def _bind(self, node: Node, pattern: Type, other: Type) -> bool:
        changed = False
        for variable, type_ in _matches(pattern, other):
            if variable not in node.bindings:
                node.bindings[variable] = type_
                changed = True
        if changed:
            _apply(node)
        return changed

    def ask_values(self) -> None:
        """Variables that no wire has bound take the type of a written value: of one that says most, first."""
        for vague in (False, True):
            for node in self._open_nodes:
                for port in list(node.inputs.values()):
                    if not port.open or port.written is None or port.written.value is None:
                        continue
                    type_ = inferred(port.written)
                    if (EMPTY in walk(type_)) == vague and self._bind(node, port.type, type_):
                        self.spread(self._links_of.get(id(node), ()))

    def let_go(self) -> None:
        """What hangs on something already reported is unknown, not open: it is not reported again."""
        for link in self._model.links:
            if not _ends_open(link):
                continue
            if link.keys or _lost(link.output):
                self._let_go(link.target, link.input)
            if _lost(link.input) and not link.keys:
                self._let_go(link.source, link.output)

    def _let_go(self, node: Node | None, port: Input | Output | None) -> None:
        if node is not None and port is not None and port.open and self._bind(node, port.type, UNKNOWN):
            self.spread(self._links_of.get(id(node), ()))


def _lost(port: Input | Output | None) -> bool:
    return port is None or holds_must_override(port.type) or holds_unknown(port.type)


def _apply(node: Node) -> None:
    def stands_for(variable: Variable) -> Type:
        return node.bindings.get(variable.name, variable)

    ports: list[Input | Output] = [*node.inputs.values(), *node.outputs.values()]
    for port in ports:
        if port.open:
            port.type = substitute(port.type, stands_for)
            port.open = is_open(port.type)
