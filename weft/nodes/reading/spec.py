"""A node class to the node type of the language (`NodeSpec`), with every rule of a well-made class checked.

What is wrong is a NodeFileError with the file and the line that it stands on. Not here: finding classes in
files (`registry.py`), and classes made of functions (`functions.py`).
"""

from __future__ import annotations

import inspect
import re
import typing
from datetime import timedelta
from typing import Any, Final, NoReturn, get_type_hints

from weft.lang.graph import MISSING, Domain
from weft.lang.metadata import (
    CreatedInputs,
    Drive,
    EntryField,
    EntryKind,
    InputSpec,
    NodeSpec,
    OutputSpec,
    PortsFromConfig,
    PortTemplate,
    Retry,
    Rule,
)
from weft.lang.types import Type
from weft.lang.values import misfit, outside
from weft.nodes.api import Node
from weft.nodes.declare import EACH, PortDetails
from weft.nodes.reading.pytypes import Unsayable, say
from weft.nodes.reading.whereabouts import node_file_error

RESERVED_TYPES = frozenset({"self", "Group", "Loop", "LoopIn", "LoopOut", "Passthrough"})
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
TO_COME = (
    *("catch_errors", "is_trigger", "fires_with", "claims_route"),
    *("live_connection", "answers_caller", "called_from_outside"),
)
"""What a class will be able to say. Until then it is refused, since a node that counts on it would be let down."""
SWITCHES = ("pure", "rerun", "hidden", "created_outputs", "cast_ports")
_PORT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LONGEST_WAIT: Final = timedelta(days=366)
"""Between two tries of a body."""
_SPEC = "__weft_spec__"
_NULL_DEFAULT = "a port that may have no value is `Port(required=False)`; one that takes null is `T | None`"


def spec_of(node: type[Node]) -> NodeSpec:
    """The node type that a class declares, made once. Raises NodeFileError."""
    made: NodeSpec | None = node.__dict__.get(_SPEC)
    if made is None:
        made = _Reader(node).read()
        setattr(node, _SPEC, made)
    return made


def label_of(type_name: str) -> str:
    """`ClaimSender` as a person would write it: `Claim sender`."""
    words = _WORD.sub(" ", type_name).replace("_", " ").split()
    return " ".join([*words[:1], *(word if word.isupper() and len(word) > 1 else word.lower() for word in words[1:])])


class _Reader:
    def __init__(self, node: type[Node]) -> None:
        self.node = node
        self.name = node.__name__

    def fail(self, message: str, *, part: tuple[str, ...] = (), hint: str | None = None) -> NoReturn:
        """`part` leads from the class to what is wrong, such as `("Inputs", "sender")`."""
        raise node_file_error(self.node, part, message, hint)

    def read(self) -> NodeSpec:
        self._check_name()
        description = str(self.node.__dict__.get("__doc__") or "")
        if not description.strip():
            self.fail(f"{self.name} has no docstring", hint="say in one sentence what the node does")
        self._check_body()
        inputs = tuple(self._input(*port) for port in self._ports("Inputs"))
        outputs = tuple(self._output(*port) for port in self._ports("Outputs"))
        spec = NodeSpec(
            type=self.name,
            label=self.node.label or label_of(self.name),
            description=inspect.cleandoc(description),
            inputs=inputs,
            outputs=outputs,
            created_inputs=self._created_inputs(),
            created_outputs=self.node.created_outputs,
            one_of_required=tuple(tuple(group) for group in self.node.one_of_required),
            ports_from_config=self._ports_from_config(),
            cast_ports=self.node.cast_ports,
            pure=self.node.pure,
            rerun=self.node.rerun,
            retry=self._retry(),
            hidden=self.node.hidden,
            rules=tuple(self.node.validate),
        )
        self._check_names(spec)
        return spec

    # --- the class as a whole ---

    def _check_name(self) -> None:
        if self.name in RESERVED_TYPES:
            self.fail(f"{self.name} is a word of the language and cannot name a node type")
        if not _TYPE_NAME.fullmatch(self.name) or "__" in self.name:
            self.fail(
                f"{self.name} cannot name a node type",
                hint="begin with a capital letter; use letters, digits and single underscores of ASCII",
            )

    def _check_body(self) -> None:
        for name in TO_COME:
            if hasattr(self.node, name) and not callable(getattr(self.node, name)):
                self.fail(f"{self.name} sets {name}, which is not supported yet", part=(name,), hint="leave it out")
        for name in SWITCHES:
            if not isinstance(getattr(self.node, name), bool):
                self.fail(f"{name} is True or False, not {getattr(self.node, name)!r}", part=(name,))
        if not isinstance(self.node.label, str | None):
            self.fail(f"label is a text, not {self.node.label!r}", part=("label",))
        rules = self.node.validate
        if not isinstance(rules, list | tuple) or not all(isinstance(each, Rule) for each in rules):
            self.fail(f"validate is a list of Rule, not {rules!r}", part=("validate",))
        if self.node.run is Node.run:
            self.fail(f"{self.name} has no body", hint="write `async def run(self, ctx)`")
        if not inspect.iscoroutinefunction(self.node.run):
            self.fail(f"the body of {self.name} is not async", part=("run",), hint="write `async def run(self, ctx)`")

    def _retry(self) -> Retry | None:
        retry = self.node.retry
        if retry is None:
            return None
        if not isinstance(retry, Retry):
            self.fail(f"retry is a Retry, not {retry!r}", part=("retry",), hint="write `retry = Retry(attempts=3)`")
        if isinstance(retry.attempts, bool) or not isinstance(retry.attempts, int) or retry.attempts < 1:
            self.fail("a node is tried at least once: `attempts` is a whole number from 1", part=("retry",))
        for name, wait in (("first", retry.first), ("max", retry.max)):
            if not isinstance(wait, timedelta) or not timedelta(0) <= wait <= LONGEST_WAIT:
                self.fail(f"`{name}` of retry is a timedelta from 0 to a year, not {wait!r}", part=("retry",))
        return retry

    def _check_names(self, spec: NodeSpec) -> None:
        if any(isinstance(group, str) for group in self.node.one_of_required):
            self.fail(
                "one_of_required is a list of groups of inputs",
                part=("one_of_required",),
                hint='write `one_of_required = [("a", "b")]`',
            )
        for group in spec.one_of_required:
            for name in group:
                if spec.input(name) is None:
                    self.fail(f"one_of_required names {name}, which is no input", part=("one_of_required",))
        config = spec.ports_from_config
        if config is not None:
            for field in (config.field, config.match_input):
                if field is not None and spec.input(field) is None:
                    self.fail(f"ports_from_config names {field}, which is no input", part=("ports_from_config",))

    # --- ports ---

    def _ports(self, side: str) -> list[tuple[str, Any, Any]]:
        """Name, annotation and default of each port, in the order they are written."""
        declared = getattr(self.node, side)
        try:
            names = _hints(declared, self.node)
        except Exception as error:
            reason = error.args[0] if isinstance(error, NameError) else f"{type(error).__name__}: {error}"
            self.fail(f"the types of {self.name}.{side} cannot be read: {reason}", part=(side,))
        ports: list[tuple[str, Any, Any]] = []
        for name, annotation in names.items():
            if not _PORT_NAME.fullmatch(name) or "__" in name:
                self.fail(
                    f"{name} cannot name a port",
                    part=(side, name),
                    hint="begin with a letter; use letters, digits and single underscores of ASCII",
                )
            ports.append((name, annotation, getattr(declared, name, MISSING)))
        for name, value in vars(declared).items():
            if not name.startswith("__") and name not in names and not callable(value):
                self.fail(
                    f"{name} in {self.name}.{side} has no type", part=(side, name), hint=f"write `{name}: str = …`"
                )
        return ports

    def _input(self, name: str, annotation: Any, written: Any) -> InputSpec:
        where = ("Inputs", name)
        details = written if isinstance(written, PortDetails) else PortDetails(default=written)
        type_, options = self._say(annotation, where)
        if details.options is not None:
            options = details.options
        domain = Domain(details.ge, details.le, details.whole, options)
        default = details.default
        if default is not MISSING:
            reason = misfit(default, type_) or outside(default, domain)
            if reason is not None:
                hint = _NULL_DEFAULT if default is None else None
                self.fail(f"the default of {name} does not fit: it is {reason}", part=where, hint=hint)
            if details.required:
                self.fail(f"{name} has a default and is required at once", part=where)
        if details.wire_only and (details.literal_only or details.compiler_read):
            self.fail(f"{name} takes neither a wire nor a written value", part=where)
        accepts: Drive = "wire" if details.wire_only else "both"
        if details.literal_only or details.compiler_read:
            accepts = "literal"
        optional = default is not MISSING or details.required is False or details.required_when_wired
        return InputSpec(
            name=name,
            type=type_,
            required=not optional,
            required_when_wired=details.required_when_wired,
            accepts=accepts,
            compiler_read=details.compiler_read,
            default=default,
            domain=None if domain == Domain() else domain,
            widget=details.widget,
            label=details.label,
            description=details.description,
        )

    def _output(self, name: str, annotation: Any, written: Any) -> OutputSpec:
        where = ("Outputs", name)
        details = written if isinstance(written, PortDetails) else PortDetails()
        if written is not MISSING and written != PortDetails(label=details.label, description=details.description):
            self.fail(f"the output {name} takes a label and a description, no default and no rule", part=where)
        type_, _ = self._say(annotation, where)
        return OutputSpec(name, type_, details.label, details.description)

    def _say(self, annotation: Any, part: tuple[str, ...]) -> tuple[Type, tuple[Any, ...] | None]:
        try:
            return say(annotation)
        except Unsayable as problem:
            what = part[-1]
            self.fail(f"{what}: {problem}", part=part, hint=problem.hint)

    def _created_inputs(self) -> CreatedInputs | None:
        created = self.node.created_inputs
        if created is None:
            return None
        return CreatedInputs(self._type_or_none(created.type, "created_inputs"), created.required)

    def _ports_from_config(self) -> PortsFromConfig | None:
        config = self.node.ports_from_config
        if config is None:
            return None
        return PortsFromConfig(
            config.field,
            tuple(
                EntryKind(
                    kind.kind,
                    kind.key_field,
                    tuple(
                        EntryField(
                            field.key,
                            field.shape,
                            field.required,
                            self._type_or_none(field.type, "ports_from_config"),
                            field.non_empty,
                            field.label,
                        )
                        for field in kind.fields
                    ),
                    kind.catch_all,
                    self._templates(kind.adds_inputs),
                    self._templates(kind.adds_outputs),
                )
                for kind in config.kinds
            ),
            config.match_input,
        )

    def _templates(self, templates: typing.Iterable[Any]) -> tuple[PortTemplate, ...]:
        return tuple(
            PortTemplate(each.name, self._say(each.type, ("ports_from_config",))[0], each.required)
            for each in templates
        )

    def _type_or_none(self, annotation: Any, part: str) -> Type | None:
        return None if annotation is EACH else self._say(annotation, (part,))[0]


def _hints(declared: type, node: type[Node]) -> dict[str, Any]:
    """The annotations of `Inputs` or `Outputs`, texts evaluated; a base's ports come first."""
    if "__annotations__" not in declared.__dict__ and declared.__mro__[1:] == (object,):
        return {}
    return get_type_hints(declared, None, dict(vars(node)))
