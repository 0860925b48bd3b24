"""weft: a durable runtime for programs written as graphs. What a node's author imports is all here.

Names are loaded when they are first asked for, so that `import weft` costs nothing.
"""

from __future__ import annotations

# As type checkers read it; `typing` itself would be most of the cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft.errors import EmissionError as EmissionError
    from weft.errors import InputError as InputError
    from weft.errors import NodeError as NodeError
    from weft.errors import Parked as Parked
    from weft.errors import RunFailed as RunFailed
    from weft.errors import WaitTimedOut as WaitTimedOut
    from weft.errors import WeftError as WeftError
    from weft.lang.metadata import Condition as Condition
    from weft.lang.metadata import Retry as Retry
    from weft.lang.metadata import Rule as Rule
    from weft.lang.types import MustOverride as MustOverride
    from weft.lang.values import same as same
    from weft.nodes import forms as forms
    from weft.nodes.api import Node as Node
    from weft.nodes.api import NodeOutput as NodeOutput
    from weft.nodes.api import node as node
    from weft.nodes.api import node_error as node_error
    from weft.nodes.conversions import convert as convert
    from weft.nodes.conversions import normalise_tag as normalise_tag
    from weft.nodes.declare import CreatedInputs as CreatedInputs
    from weft.nodes.declare import EntryField as EntryField
    from weft.nodes.declare import EntryKind as EntryKind
    from weft.nodes.declare import Port as Port
    from weft.nodes.declare import PortsFromConfig as PortsFromConfig
    from weft.nodes.declare import PortTemplate as PortTemplate
    from weft.nodes.execution import Cancellation as Cancellation
    from weft.nodes.execution import ExecutionContext as ExecutionContext
    from weft.nodes.execution import StopSelf as StopSelf
    from weft.nodes.values import ValueBag as ValueBag
    from weft.nodes.waits import First as First
    from weft.nodes.waits import Form as Form
    from weft.nodes.waits import RunRef as RunRef
    from weft.nodes.waits import Timer as Timer
    from weft.nodes.waits import Webhook as Webhook
    from weft.nodes.waits import WebhookRequest as WebhookRequest
    from weft.nodes.waits import all_of as all_of
    from weft.nodes.waits import first_of as first_of

_HOMES = {
    "weft.errors": ("EmissionError", "InputError", "NodeError", "Parked", "RunFailed", "WaitTimedOut", "WeftError"),
    "weft.lang.metadata": ("Condition", "Retry", "Rule"),
    "weft.lang.types": ("MustOverride",),
    "weft.lang.values": ("same",),
    "weft.nodes.api": ("Node", "NodeOutput", "node", "node_error"),
    "weft.nodes.conversions": ("convert", "normalise_tag"),
    "weft.nodes.declare": (
        "CreatedInputs",
        "EntryField",
        "EntryKind",
        "Port",
        "PortTemplate",
        "PortsFromConfig",
    ),
    "weft.nodes.execution": ("Cancellation", "ExecutionContext", "StopSelf"),
    "weft.nodes.values": ("ValueBag",),
    "weft.nodes.waits": ("First", "Form", "RunRef", "Timer", "Webhook", "WebhookRequest", "all_of", "first_of"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "forms"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    module = _HOME_OF.get(name)
    if name == "forms":
        value: Any = import_module("weft.nodes.forms")
    elif module is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    else:
        value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
