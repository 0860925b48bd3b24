"""What the compiler knows of a node type: its ports, flags and rules, as plain data.

The node registry makes these from node classes; `weft describe-nodes --json` prints them. Nothing here knows
Python classes, and nothing here looks at a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol

from weft.lang.graph import MISSING, Domain
from weft.lang.types import Type

Drive = Literal["both", "wire", "literal"]
"""What may feed an input: either, a wire only, or a written value only."""


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of a node type. A variable called `T_Auto` stands for a fresh variable of this port alone.

    `compiler_read` marks an input that the compiler itself must know (it makes ports from it): a plain
    written value, no wire and no marker.
    """

    name: str
    type: Type
    required: bool = False
    required_when_wired: bool = False
    accepts: Drive = "both"
    compiler_read: bool = False
    default: Any = MISSING
    domain: Domain | None = None
    widget: str | None = None
    label: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """An output port of a node type."""

    name: str
    type: Type
    label: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class CreatedInputs:
    """The type takes inputs that the program makes: all of one `type`, or each of a fresh variable (None)."""

    type: Type | None = None
    required: bool = True


EntryShape = Literal["typed", "value", "valueList", "number", "element", "regex"]


@dataclass(frozen=True, slots=True)
class EntryField:
    """A key of a list entry.

    `typed` holds a value of `value_type`; `value` one that fits the matched input; `valueList` a list of
    such; `element` one that the matched value may contain; `number` a number (the matched input must admit
    numbers); `regex` a pattern that compiles.
    """

    key: str
    shape: EntryShape = "typed"
    required: bool = False
    value_type: Type | None = None
    non_empty: bool = False
    label: str | None = None


@dataclass(frozen=True, slots=True)
class PortTemplate:
    """A port that a list entry adds; `{key}` in the name is the entry's key."""

    name_template: str
    type: Type
    required: bool = False


@dataclass(frozen=True, slots=True)
class EntryKind:
    """One kind of list entry: its keys and the ports that it adds."""

    kind: str
    key_field: str = "key"
    fields: tuple[EntryField, ...] = ()
    catch_all: bool = False
    adds_inputs: tuple[PortTemplate, ...] = ()
    adds_outputs: tuple[PortTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class PortsFromConfig:
    """Ports made from a written list: each entry is an object whose `kind` names one of `kinds`."""

    field: str
    kinds: tuple[EntryKind, ...]
    match_input: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """One of a closed list of questions about a node. `subject` is a port or key, `value` what it equals."""

    question: Literal[
        "input_satisfied",
        "input_wired",
        "output_wired",
        "config_present",
        "config_nonempty",
        "config_equals",
        "all",
        "any",
        "not",
    ]
    subject: str | None = None
    value: Any = None
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Where `when` holds (always, without one), `then` must hold, or `message` is reported."""

    then: Condition
    message: str
    when: Condition | None = None
    severity: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failing body is tried, the first time included, and how long the waits in between are: `first`,
    then twice as long each time, but never longer than `max`."""

    attempts: int = 3
    first: timedelta = timedelta(seconds=1)
    max: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node type. Flags not built yet (triggers, live connections) have no field here until they are."""

    type: str
    label: str
    description: str
    inputs: tuple[InputSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    created_inputs: CreatedInputs | None = None
    created_outputs: bool = False
    one_of_required: tuple[tuple[str, ...], ...] = ()
    ports_from_config: PortsFromConfig | None = None
    cast_ports: bool = False
    pure: bool = False
    rerun: bool = True
    retry: Retry | None = None
    hidden: bool = False
    rules: tuple[Rule, ...] = ()
    _inputs: Mapping[str, InputSpec] = field(init=False, repr=False, compare=False)
    _outputs: Mapping[str, OutputSpec] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inputs", {port.name: port for port in self.inputs})
        object.__setattr__(self, "_outputs", {port.name: port for port in self.outputs})

    def input(self, name: str) -> InputSpec | None:
        return self._inputs.get(name)

    def output(self, name: str) -> OutputSpec | None:
        return self._outputs.get(name)


class NodeTypes(Protocol):
    """What the compiler asks of a registry."""

    def spec(self, type_name: str) -> NodeSpec | None:
        """The node type of that name, or None: there is none."""

    def names(self) -> Iterable[str]:
        """Every node type, for hints at the nearest."""
