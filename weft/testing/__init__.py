"""The author's rig: run a node's body in a test, without a database. `rig` is the pytest fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.flow.firing import CLOSED as CLOSED
    from weft.testing.outcome import Failure as Failure
    from weft.testing.outcome import Outcome as Outcome
    from weft.testing.outcome import StartedRun as StartedRun
    from weft.testing.rig import Rig as Rig
    from weft.testing.server import Request as Request
    from weft.testing.stage import OpenWait as OpenWait
    from weft.testing.stage import Stage as Stage
    from weft.testing.stage import StagedRun as StagedRun
    from weft.testing.staging import program as program

_HOME_OF = {
    "CLOSED": "weft.flow.firing",
    "Failure": "weft.testing.outcome",
    "OpenWait": "weft.testing.stage",
    "Outcome": "weft.testing.outcome",
    "Request": "weft.testing.server",
    "Rig": "weft.testing.rig",
    "Stage": "weft.testing.stage",
    "StagedRun": "weft.testing.stage",
    "StartedRun": "weft.testing.outcome",
    "program": "weft.testing.staging",
}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'weft.testing' has no attribute {name!r}")
    return getattr(import_module(module), name)
