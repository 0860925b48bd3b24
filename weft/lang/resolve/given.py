"""Values that whoever starts a program gives to its inputs, each as if it were written there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.lang.diagnostics import nearest
from weft.lang.resolve.model import Input, Model, Node, Written
from weft.lang.syntax import Scalar
from weft.lang.values import a_value, outside, unstorable

Given = Mapping[str, Mapping[str, Any]]
"""`{node: {port: value}}`."""


class GivenRefused(ValueError):
    """A value was given to what does not take it."""


def fill(model: Model, given: Given) -> None:
    """Puts the values in, over what is written. Raises GivenRefused for a node or port that there is not, one that is
    wired or takes no value, and a value that cannot be stored."""
    for id_, values in given.items():
        node = model.nodes.get(id_)
        if node is None:
            raise GivenRefused(f"the program has no node `{id_}`{_meant(id_, model.nodes)}")
        if not isinstance(values, Mapping):
            raise GivenRefused(f"what is given to `{id_}` is an object from port to value, not {a_value(values)}")
        for name, value in values.items():
            port = _port(node, name)
            reason = unstorable(value)
            if reason is not None:
                raise GivenRefused(f"the value given to `{id_}.{name}` cannot be stored: {reason}")
            port.written = Written(Scalar(None, "null", node.span), value, node.span)


def _port(node: Node, name: str) -> Input:
    port = node.inputs.get(name)
    if port is None:
        raise GivenRefused(f"`{node.id}` has no input `{name}`{_meant(name, node.inputs)}")
    if port.wire is not None:
        raise GivenRefused(f"`{node.id}.{name}` is wired, so no value can be given to it")
    if port.spec.compiler_read:
        raise GivenRefused(f"`{node.id}.{name}` is read by the compiler, so no value can be given to it")
    if port.spec.accepts == "wire":
        raise GivenRefused(f"`{node.id}.{name}` takes a wire, so no value can be given to it")
    return port


def check_given(model: Model, given: Given) -> None:
    """Raises GivenRefused for a value that is not of its port's type or outside its domain, once types are known."""
    for id_, values in given.items():
        for name in values:
            port = model.nodes[id_].inputs[name]
            assert port.written is not None
            reason = port.written.problem
            if reason is not None:
                raise GivenRefused(f"`{id_}.{name}` takes {port.type}: {reason}")
            reason = None if port.spec.domain is None else outside(port.written.value, port.spec.domain)
            if reason is not None:
                raise GivenRefused(f"`{id_}.{name}`: {reason}")


def _meant(name: str, known: Mapping[str, Any]) -> str:
    likely = nearest(name, known)
    return f"; did you mean `{likely}`?" if likely is not None else ""
