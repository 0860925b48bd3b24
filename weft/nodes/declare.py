"""The words of a node's class body: what a port carries beyond its type, and what the whole type allows.

Plain data in the author's terms: types here are Python types. `spec.py` turns them into the language's own.
Named tuples, since every process that loads the nodes makes these classes, and dataclasses cost ten times that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from weft.lang.graph import MISSING
from weft.lang.metadata import EntryShape


class PortDetails(NamedTuple):
    """What `Port(...)` makes. `required` is None where it follows from the default."""

    default: Any = MISSING
    required: bool | None = None
    ge: float | None = None
    le: float | None = None
    whole: bool = False
    options: tuple[Any, ...] | None = None
    wire_only: bool = False
    literal_only: bool = False
    required_when_wired: bool = False
    compiler_read: bool = False
    label: str | None = None
    description: str | None = None
    widget: str | None = None


def Port(
    default: Any = MISSING,
    *,
    required: bool | None = None,
    ge: float | None = None,
    le: float | None = None,
    whole: bool = False,
    options: Sequence[Any] | None = None,
    wire_only: bool = False,
    literal_only: bool = False,
    required_when_wired: bool = False,
    compiler_read: bool = False,
    label: str | None = None,
    description: str | None = None,
    widget: str | None = None,
) -> Any:
    """What a port carries beyond its type; it stands where the default would: `count: int = Port(3, ge=1)`.

    A port with a default is optional, and so is one with `required=False`, which then may have no value at
    all. `ge` and `le` are bounds that count, `whole` asks for whole numbers, `options` are the only values
    taken (for a list: the only items). `wire_only` and `literal_only` say what may feed the port, and
    `compiler_read` that ports are made from it, so that only a plain written value will do.
    `required_when_wired`: the node is skipped when the wire closes, and runs when there is no wire.
    An output takes `label` and `description` alone.
    """
    return PortDetails(
        default,
        required,
        ge,
        le,
        whole,
        None if options is None else tuple(options),
        wire_only,
        literal_only,
        required_when_wired,
        compiler_read,
        label,
        description,
        widget,
    )


class _Each:
    def __repr__(self) -> str:
        return "a type of its own each"


EACH: Final = _Each()
"""The type of created inputs of which each has a type of its own."""


class CreatedInputs(NamedTuple):
    """`created_inputs = CreatedInputs(str, required=False)`: the program may give the node more inputs.

    They are all of one Python type (a `TypeVar` makes them agree with each other and with the ports that
    name it), or, without one, each of its own.
    """

    type: Any = EACH
    required: bool = True


class EntryField(NamedTuple):
    """A key of an entry in the list that ports are made from.

    `shape` says what it holds: `typed` a value of the Python type `type`, `value` one that fits the matched
    input, `valueList` a list of such, `element` one that the matched value may contain, `number` a number,
    `regex` a pattern that compiles.
    """

    key: str
    shape: EntryShape = "typed"
    required: bool = False
    type: Any = EACH
    non_empty: bool = False
    label: str | None = None


class PortTemplate(NamedTuple):
    """A port that an entry adds; `{key}` in the name stands for the entry's own name."""

    name: str
    type: Any
    required: bool = False


class EntryKind(NamedTuple):
    """One kind of entry: the keys it takes and the ports it adds. `key_field` is the key that names it."""

    kind: str
    key_field: str = "key"
    fields: Sequence[EntryField] = ()
    catch_all: bool = False
    adds_inputs: Sequence[PortTemplate] = ()
    adds_outputs: Sequence[PortTemplate] = ()


class PortsFromConfig(NamedTuple):
    """`ports_from_config = PortsFromConfig("cases", kinds)`: ports made from the list written on `field`.

    Each entry is an object whose `kind` names one of `kinds`; `match_input` is the input that the entries'
    values are compared with.
    """

    field: str
    kinds: Sequence[EntryKind]
    match_input: str | None = None
