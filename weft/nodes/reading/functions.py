"""An `@node` function to a node class: parameters are inputs, the return type is the outputs."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from weft.lang.graph import MISSING
from weft.nodes.api import Node, NodeOutput
from weft.nodes.declare import PortDetails
from weft.nodes.execution import ExecutionContext
from weft.nodes.reading.pytypes import fields_of, is_record
from weft.nodes.reading.whereabouts import FUNCTION_ATTRIBUTE, node_file_error

Function = Callable[..., Any]


def type_name_of(function_name: str) -> str:
    """`make_title` names the node type `MakeTitle`."""
    return "".join(part[:1].upper() + part[1:] for part in function_name.split("_"))


def class_of(function: Function, flags: Mapping[str, Any]) -> type[Node]:
    """The node class of a function. Its ports are read only when they are asked for, as with any class."""
    name = type_name_of(function.__name__)
    body = {
        "__module__": function.__module__,
        "__qualname__": name,
        "__doc__": function.__doc__,
        FUNCTION_ATTRIBUTE: staticmethod(function),
        "Inputs": _PortsOf(_inputs_of, function),
        "Outputs": _PortsOf(_outputs_of, function),
        "run": _async_body(function) if inspect.iscoroutinefunction(function) else _threaded_body(function),
        **{flag: value for flag, value in flags.items() if value is not None},
    }
    return type(name, (Node,), body)


class _PortsOf:
    """`Inputs` or `Outputs` of a function's class, made when first looked at.

    By then the module is complete, so a type that is declared below the function is known.
    """

    def __init__(self, make: Callable[[type[Node], Function], type], function: Function) -> None:
        self.make = make
        self.function = function
        self.made: type | None = None

    def __get__(self, instance: object, owner: type[Node]) -> type:
        if self.made is None:
            self.made = self.make(owner, self.function)
        return self.made


def _inputs_of(node: type[Node], function: Function) -> type:
    hints = _hints(node, function)
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        where = ("Inputs", name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise node_file_error(
                node, where, f"{name}: an input is a parameter that can be named", "write a Node class instead"
            )
        if name not in hints:
            raise node_file_error(node, where, f"{name} has no type", f"write `{name}: str`")
        if hints[name] is ExecutionContext:
            raise node_file_error(
                node,
                where,
                "a function is not given the context",
                "write a Node class, with `async def run(self, ctx)`",
            )
        annotations[name] = hints[name]
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
            _check_absence(node, name, parameter.default)
    return type("Inputs", (), {"__annotations__": annotations, "__module__": node.__module__, **defaults})


def _check_absence(node: type[Node], name: str, default: Any) -> None:
    if not isinstance(default, PortDetails) or default.default is not MISSING:
        return
    if default.required is False or default.required_when_wired:
        raise node_file_error(
            node,
            ("Inputs", name),
            f"{name} may have no value, and a function needs one for each parameter",
            "give it a default, or write a Node class",
        )


def _outputs_of(node: type[Node], function: Function) -> type:
    hints = _hints(node, function)
    if "return" not in hints:
        raise node_file_error(
            node, (), f"{function.__name__} does not say what it returns", "write `-> str`, or `-> None` for no output"
        )
    returned = hints["return"]
    if returned is types.NoneType:
        annotations: dict[str, Any] = {}
    elif is_record(returned):
        annotations = fields_of(returned)
    else:
        annotations = {"value": returned}
    return type("Outputs", (), {"__annotations__": annotations, "__module__": node.__module__})


def _hints(node: type[Node], function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception as error:
        reason = error.args[0] if isinstance(error, NameError) else f"{type(error).__name__}: {error}"
        raise node_file_error(node, (), f"the types of {function.__name__} cannot be read: {reason}") from error


# --- calling it -------------------------------------------------------------------------------------------


def _async_body(function: Function) -> Any:
    call = _Call(function)

    async def run(self: Node, ctx: ExecutionContext) -> None:
        await call.emit(ctx, await function(**call.arguments(ctx)))

    return run


def _threaded_body(function: Function) -> Any:
    call = _Call(function)

    async def run(self: Node, ctx: ExecutionContext) -> None:
        arguments = call.arguments(ctx)
        await call.emit(ctx, await ctx.thread(lambda flag: function(**arguments)))

    return run


class _Call:
    """How to call one function: which parameters it has, and what becomes of the result."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._hints: dict[str, Any] | None = None
        self._details: dict[str, Any] = {}

    def _learn(self) -> dict[str, Any]:
        self._hints = get_type_hints(self.function)
        for name, parameter in inspect.signature(self.function).parameters.items():
            if isinstance(parameter.default, PortDetails):
                self._details[name] = parameter.default.default
        return self._hints

    def arguments(self, ctx: ExecutionContext) -> dict[str, Any]:
        """The inputs that have a value; an absent one is left to the parameter's own default."""
        hints = self._hints or self._learn()
        arguments: dict[str, Any] = dict(self._details) if self._details else {}
        inputs = ctx.inputs
        for name in inputs:
            value = inputs.raw(name)
            if type(value) is float and hints[name] is int and value.is_integer():
                value = int(value)
            arguments[name] = value
        return arguments

    async def emit(self, ctx: ExecutionContext, result: Any) -> None:
        returned = (self._hints or self._learn()).get("return")
        if returned is types.NoneType:
            return
        output = NodeOutput()
        if is_record(returned):
            output.update(_fields(result, ctx.declared_outputs()))
        else:
            output.set("value", result)
        await ctx.pulse_downstream(output)


def _fields(result: Any, names: typing.Iterable[str]) -> Mapping[str, Any]:
    """The fields of a returned record. A key that a TypedDict leaves out closes its port."""
    if isinstance(result, Mapping):
        return result
    return {name: getattr(result, name) for name in names}
