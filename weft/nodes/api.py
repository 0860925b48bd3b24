"""What a node's author writes: a `Node` class or an `@node` function, and what its body hands on.

Not here: the ports' details (`declare.py`), what the body is given (`execution.py`), and how a class becomes
a node type of the language (`spec.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from weft.errors import DivergedAfterCrash, NodeError

if TYPE_CHECKING:
    from weft.lang.metadata import Retry, Rule
    from weft.nodes.declare import CreatedInputs, PortsFromConfig
    from weft.nodes.execution import ExecutionContext

F = TypeVar("F", bound=Callable[..., Any])

NODE_ATTRIBUTE = "__weft_node__"
"""Where an `@node` function keeps the node class that was made of it."""


class Node:
    """A node type. The class's name is the type's, its docstring the description.

    The nested classes `Inputs` and `Outputs` declare ports as annotations; a default (or `Port(...)`) makes
    an input optional. An instance lives for one firing.
    """

    label: ClassVar[str | None] = None
    """What a person reads; made from the class's name where it is not given."""

    pure: ClassVar[bool] = False
    """The body has no outside effects, so it need not wait until its start is stored."""

    rerun: ClassVar[bool] = True
    """False: a firing that a crash caught fails, instead of running a second time."""

    retry: ClassVar[Retry | None] = None
    """A body that fails is tried again: `retry = Retry(attempts=3)`. The waits in between are stored, hold nothing
    and end with a stop. What `ctx.run` saved is kept, but for a failure that the body did not go on from. Not
    tried again: what says `retry=False`, such as a time-out or a difference to what was recorded."""

    created_inputs: ClassVar[CreatedInputs | None] = None
    """The program may give the node inputs of its own making."""

    created_outputs: ClassVar[bool] = False
    """The program may declare outputs in the node's header."""

    one_of_required: ClassVar[Sequence[Sequence[str]]] = ()
    """Groups of inputs; of each group at least one must have something."""

    ports_from_config: ClassVar[PortsFromConfig | None] = None
    """Ports are made from a written list."""

    cast_ports: ClassVar[bool] = False
    """The node converts its input into the type of its output; the compiler checks that the pair is allowed."""

    hidden: ClassVar[bool] = False
    """Left out of lists for people."""

    validate: ClassVar[Sequence[Rule]] = ()
    """Rules that the compiler checks on each node of the type."""

    class Inputs:
        """The input ports: `name: type`, or `name: type = default`."""

    class Outputs:
        """The output ports: `name: type`."""

    async def run(self, ctx: ExecutionContext) -> None:
        """The body. It hands values on through `ctx` and returns nothing."""
        raise NodeError(f"{type(self).__name__} has no body: write `async def run(self, ctx)`")


class NodeOutput:
    """Values for output ports, to hand to `ctx.pulse_downstream`.

    `NodeOutput(text="hi")`, `.set(port, value)` (the last one counts) and `.update(mapping)`.
    """

    __slots__ = ("values",)

    def __init__(self, /, **values: Any) -> None:
        self.values: dict[str, Any] = values

    def set(self, port: str, value: Any) -> NodeOutput:
        self.values[port] = value
        return self

    def update(self, values: Mapping[str, Any]) -> NodeOutput:
        self.values.update(values)
        return self

    def __repr__(self) -> str:
        return f"NodeOutput({', '.join(f'{port}={value!r}' for port, value in self.values.items())})"


@contextmanager
def node_error(doing: str) -> Iterator[None]:
    """Say what the body was doing when something fails inside: `with node_error("reading the response"):`.

    Every exception becomes a NodeError whose text begins with `doing`; a cancellation passes untouched.
    """
    try:
        yield
    except DivergedAfterCrash:
        raise
    except Exception as error:
        retry = error.retry if isinstance(error, NodeError) else None
        raise NodeError(f"{doing}: {str(error) or type(error).__name__}", retry=retry) from error


@overload
def node(function: F, /) -> F: ...
@overload
def node(
    *,
    label: str | None = None,
    pure: bool = False,
    rerun: bool = True,
    retry: Retry | None = None,
    hidden: bool = False,
) -> Callable[[F], F]: ...
def node(
    function: Any = None,
    /,
    *,
    label: str | None = None,
    pure: bool = False,
    rerun: bool = True,
    retry: Retry | None = None,
    hidden: bool = False,
) -> Any:
    """Make a node type of a function: its name in capitals is the type, its parameters are the inputs.

    A plain return type is one output called `value`; a `TypedDict`, dataclass or model is one output a
    field. The function stays what it was and can be called. A plain `def` runs in a thread, so that it
    cannot hold up other runs; after a stop that thread is left behind.
    """

    def decorate(function: F) -> F:
        from weft.nodes.reading.functions import class_of

        flags = {"label": label, "pure": pure, "rerun": rerun, "retry": retry, "hidden": hidden}
        setattr(function, NODE_ATTRIBUTE, class_of(function, flags))
        return function

    return decorate if function is None else decorate(function)


def node_class(what: type[Node] | Callable[..., Any]) -> type[Node]:
    """The node class of a class or an `@node` function. Raises TypeError for anything else."""
    if isinstance(what, type) and issubclass(what, Node):
        return what
    made: type[Node] | None = getattr(what, NODE_ATTRIBUTE, None)
    if made is None:
        raise TypeError(f"{what!r} is neither a Node class nor an @node function")
    return made
