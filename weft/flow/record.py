"""What a firing's record admits next, and how it is kept: emitting calls, positions, waits.

A body that runs again reads its record by position, so a record without gaps and without doubles is what makes
that safe.
"""

from __future__ import annotations

from typing import Any

from weft.errors import EmissionError, EventRefused
from weft.flow import events as ev
from weft.flow.firing import Firing, name_of
from weft.flow.plan import Wires
from weft.flow.suspension import Suspension


def wires_of(firing: Firing, port: str) -> Wires:
    wires = firing.plan.wires.get(port)
    if wires is None:
        outputs = ", ".join(firing.plan.wires) or "none"
        raise EmissionError(f"{firing.node} has no output {port} (it has: {outputs})")
    return wires


def check_call(firing: Firing, event: ev.PortEmitted | ev.PortClosed) -> None:
    if firing.suspensions and any(each.outcome is None for each in firing.suspensions.values()):
        raise EmissionError(f"{name_of(firing.key)} emits or closes {event.port} while it waits")
    count = len(firing.calls)
    if event.call != count and (event.call != count - 1 or any(port == event.port for port, _ in firing.calls[-1])):
        raise EventRefused(
            f"{event.kind} on {event.port} of {name_of(firing.key)} belongs to call {event.call}, "
            f"but {count} calls are on record"
        )


def record_call(firing: Firing, call: int, port: str, value: Any) -> None:
    if call == len(firing.calls):
        firing.calls.append(((port, value),))
    else:
        firing.calls[call] += ((port, value),)


def check_silent(firing: Firing, event: ev.SuspensionRegistered | ev.NodeSuspended) -> None:
    if firing.calls:
        raise EventRefused(f"{event.kind}: {name_of(firing.key)} has emitted or closed a port, it can wait no more")


def check_position(firing: Firing, call: int) -> None:
    if call in firing.outputs or call in firing.suspensions:
        raise EventRefused(f"{name_of(firing.key)} has the outcome of its call {call} on record already")


def catch_up(firing: Firing, suspension: Suspension) -> None:
    """Give the suspension the ends of its waits that were known before it was."""
    if firing.early:
        tokens = suspension.tokens
        for token in [token for token in firing.early if token in tokens]:
            suspension.resolve(firing.early.pop(token))
        firing.early = firing.early or None


def forget_last_failures(firing: Firing) -> None:
    """Before another try: the failed `ctx.run` calls with which the record ends are to be called again.

    A failure that something was recorded after stays, since the body knew of it and went on.
    """
    outputs = firing.outputs
    for call, output in reversed(list(outputs.items())):
        if output.error is None or any(position > call for position in firing.suspensions):
            return
        del outputs[call]
