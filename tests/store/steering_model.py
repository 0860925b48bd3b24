"""The rules of tags and stops, small enough to try every order of what may happen. Nothing here touches a store.

Each run does tag-begin, tag-commit, ask and then finish, in this order; between any two of them it may crash, which
makes its body run again from the top; a stop that was asked may be carried out at any time after; a run may park once
it has asked, and is woken before it finishes. From tag-begin to tag-commit the tag is locked: nobody else tags or asks
meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Run(NamedTuple):
    """`at` is what the body has done: begin, tagging, tagged, asked, parked, ended. `number` is its place among the
    tags, `cutoff` that of its stop; both outlive a crash. `end` is finished or who stopped it."""

    at: str = "begin"
    number: int | None = None
    cutoff: int | None = None
    carried: bool = False
    crashes: int = 0
    end: str | int | None = None


World = tuple[Run, ...]
Step = tuple[str, int]


def steps(world: World, crashes: int = 1) -> Iterator[Step]:
    """What may happen next."""
    locked = any(run.at == "tagging" for run in world)
    for me, run in enumerate(world):
        if run.cutoff is not None and not run.carried and not any(_holds_up(each, run.cutoff) for each in world):
            yield "carry-out", me
        if run.end is not None:
            continue
        match run.at:
            case "begin" if not locked:
                yield "tag-begin", me
            case "tagging":
                yield "tag-commit", me
            case "tagged" if not locked:
                yield "ask", me
            case "asked":
                yield "park", me
                yield "finish", me
            case "parked":
                yield "wake", me
        if run.at != "begin" and run.at != "parked" and run.crashes < crashes:
            yield "crash", me


def _holds_up(run: Run, cutoff: int) -> bool:
    """Whoever tags again, after a crash, holds its own row, and a stop that reaches it waits for that."""
    return run.at == "tagging" and run.number is not None and run.number < cutoff


def follow(world: World, step: Step) -> World:
    """What stands after it."""
    what, me = step
    run = world[me]
    match what:
        case "tag-begin":
            run = run._replace(at="tagging")
        case "tag-commit":
            drawn = 1 + max((each.number or 0 for each in world), default=0)
            run = run._replace(at="tagged", number=run.number or drawn)
        case "ask":
            run = run._replace(at="asked", cutoff=run.cutoff or run.number)
        case "park":
            run = run._replace(at="parked")
        case "wake":
            run = run._replace(at="asked")
        case "finish":
            run = run._replace(at="ended", end="finished")
        case "crash":
            run = run._replace(at="begin", crashes=run.crashes + 1)
        case "carry-out":
            run = run._replace(carried=True)
    changed = (*world[:me], run, *world[me + 1 :])
    if what != "carry-out":
        return changed
    return tuple(_stopped(each, me, run.cutoff) for each in changed)


def _stopped(run: Run, by: int, cutoff: int | None) -> Run:
    """A stop reaches whoever is live and numbered below its cutoff."""
    if run.end is None and run.number is not None and cutoff is not None and run.number < cutoff:
        return run._replace(at="ended", end=by)
    return run


def check(world: World) -> None:
    """What holds always: whoever was stopped was stopped by a newer one, and the newest is never stopped."""
    numbers = [run.number for run in world if run.number is not None]
    assert len(set(numbers)) == len(numbers)
    for run in world:
        if isinstance(run.end, int):
            theirs = world[run.end].number
            assert run.number is not None and theirs is not None and theirs > run.number
        if run.number is not None and run.number == max(numbers):
            assert run.end in (None, "finished")


def rested(world: World) -> bool:
    """All have tagged, asked and been carried out, and none is going to crash: who is live now survives."""
    return all(run.end is not None or run.at in ("asked", "parked") for run in world) and all(
        run.carried for run in world if run.cutoff is not None
    )


def check_survivors(world: World) -> None:
    """At rest exactly one survives, the newest, or none where it has finished."""
    newest = max(world, key=lambda run: run.number or 0)
    assert [run for run in world if run.end is None] == ([] if newest.end else [newest])
