"""The ports of one node of a program, prepared once: what may arrive, what may be emitted.

Emission is all or nothing: `checked_output` looks at every port of a call before any of them is emitted. Not
here: which ports were touched before, and where emissions go (`context.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from weft.errors import EmissionError
from weft.lang.diagnostics import nearest
from weft.lang.graph import GATES, MISSING, Domain, InputPort, Node, OutputPort
from weft.lang.storable import LARGEST_INTEGER, SMALLEST_INTEGER
from weft.lang.values import fitter, outside, unstorable

VALUE_LIMIT: Final = 1024 * 1024
"""The size of one encoded value, in bytes of UTF-8, unless a setting says otherwise."""

Fits = Callable[[Any], str | None]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_INTEGERS = range(SMALLEST_INTEGER, LARGEST_INTEGER + 1)


class Emission(NamedTuple):
    """One port of an emission: the value as everybody downstream sees it, and its JSON text."""

    port: str
    value: Any
    text: str


class NodePorts:
    """The ports of a program's node. Made once for each node of a program and kept by whoever runs it."""

    __slots__ = ("_arrivals", "fits", "inputs", "node", "outputs")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inputs: tuple[InputPort, ...] = tuple(port for port in node.inputs if port.name not in GATES)
        self.outputs: dict[str, OutputPort] = {port.name: port for port in node.outputs}
        self.fits: dict[str, Fits] = {port.name: fitter(port.type) for port in node.outputs}
        self._arrivals: tuple[tuple[InputPort, Fits, Domain | None], ...] = tuple(
            (port, fitter(port.type), port.domain) for port in self.inputs
        )

    @classmethod
    def of(cls, node: Node) -> NodePorts:
        return cls(node)

    def misfit(self, values: Mapping[str, Any]) -> str | None:
        """None where every value fits its input's type and domain; else a message for the node's failure."""
        for port, fits, domain in self._arrivals:
            value = values.get(port.name, MISSING)
            if value is MISSING or value is port.literal or value is port.default:
                continue
            reason = fits(value)
            if reason is None and domain is not None:
                reason = outside(value, domain)
            if reason is not None:
                return f"the input `{port.name}` of `{self.node.id}` does not take what came: it is {reason}"
        return None

    def output(self, name: str) -> OutputPort:
        """An output by name. Raises EmissionError, with the nearest name, where there is none."""
        port = self.outputs.get(name)
        if port is None:
            raise EmissionError(self._no_output(name))
        return port

    def _no_output(self, name: str) -> str:
        likely = nearest(name, self.outputs)
        if likely is not None:
            return f"`{self.node.id}` has no output `{name}`; did you mean `{likely}`?"
        if not self.outputs:
            return f"`{self.node.id}` has no output `{name}`; it has none at all"
        return f"`{self.node.id}` has no output `{name}`; it has {', '.join(f'`{each}`' for each in self.outputs)}"

    def checked_output(
        self, values: Mapping[str, Any], touched: Collection[str], limit: int = VALUE_LIMIT
    ) -> list[Emission]:
        """The emissions of one call. Raises EmissionError, naming node and port, before any is made.

        `touched` are the ports that were emitted or closed before, `limit` is in bytes of encoded UTF-8.
        """
        emissions: list[Emission] = []
        for name, value in values.items():
            fits = self.fits.get(name)
            if fits is None:
                raise EmissionError(self._no_output(name))
            if name in touched:
                raise self.touched_twice(name)
            try:
                value, text = encoded(value, limit)
            except ValueError as error:
                raise EmissionError(f"the value for `{self.node.id}.{name}` cannot be stored: {error}") from None
            reason = fits(value)
            if reason is not None:
                raise EmissionError(f"the output `{name}` of `{self.node.id}` does not take this: it is {reason}")
            emissions.append(Emission(name, value, text))
        return emissions

    def touched_twice(self, name: str) -> EmissionError:
        return EmissionError(
            f"the output `{name}` of `{self.node.id}` was emitted or closed before",
            hint="each output takes one value, or one closing, a firing",
        )


def encoded(value: Any, limit: int = VALUE_LIMIT) -> tuple[Any, str]:
    """A value as it will be read back, and its JSON text. Raises ValueError: it cannot be stored, and why."""
    kind = value.__class__
    text: str | None = None
    if kind is str:
        if value.isascii() and "\0" not in value:
            text = encode_basestring(value)
    elif value is None:
        return None, "null"
    elif kind is bool:
        return value, "true" if value else "false"
    elif kind is int:
        if value in _INTEGERS:
            return value, int.__repr__(value)
    elif kind is float and math.isfinite(value):
        return value, float.__repr__(value)
    if text is None:
        reason = unstorable(value)
        if reason is not None:
            raise ValueError(reason)
        text = _encode(value)
        value = json.loads(text)
    # A code point is at most four bytes: a short text needs no count.
    if len(text) * 4 > limit:
        size = len(text) if text.isascii() else len(text.encode())
        if size > limit:
            raise ValueError(f"it has {size:,} bytes, and {limit:,} are allowed")
    return value, text
