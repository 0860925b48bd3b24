"""Every order of what two and three runs may do when each tags itself and stops its elders: one survives, the newest.

On the rules alone for two and three runs; on the store, with a transaction held open between tag-begin and tag-commit,
for every order of two, in which one of them may crash once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import asyncpg
import pytest

from tests.store.steering_model import Run, Step, World, check, check_survivors, follow, rested, steps
from tests.store.world import World as Store
from tests.store.world import tag_in
from weft.store.runs import runs, stops

ONE_OF = 12


@pytest.mark.parametrize("count", [2, 3])
def test_every_interleaving_of_the_model(count: int, ran: Callable[[str], None]) -> None:
    """All states that any interleaving comes to, each with every step that goes on from it."""
    begin: World = (Run(),) * count
    seen, left = {begin}, [begin]
    rests = taken = 0
    while left:
        world = left.pop()
        check(world)
        if rested(world):
            check_survivors(world)
            rests += 1
        for step in steps(world):
            after = follow(world, step)
            taken += 1
            if after not in seen:
                seen.add(after)
                left.append(after)
    assert rests
    ran(f"{len(seen)} states, {taken} steps, {rests} at rest")


def interleavings(world: World, so_far: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every way from here to rest with at most one crash. The first step is the first run's: the runs are alike. The
    wake is the model's alone: in the store it changes neither tags nor stops."""
    if rested(world):
        yield so_far
        return
    crashes = 1 - sum(run.crashes for run in world)
    for step in steps(world, crashes=1):
        if step[0] not in ("park", "wake") and (so_far or step[1] == 0) and (crashes or step[0] != "crash"):
            yield from interleavings(follow(world, step), (*so_far, step))


class Acted:
    """Two runs of the store that do what the model's do."""

    def __init__(self, store: Store, ids: list[UUID], session: asyncpg.Connection) -> None:
        self.store = store
        self.ids = ids
        self.session = session
        self.leases = [1, 1]
        self.tagging: int | None = None
        self.stops: dict[int, int] = {}

    async def act(self, step: Step) -> None:
        what, me = step
        run, fence = self.ids[me], self.store.fence(self.ids[me], lease=self.leases[me])
        match what:
            case "tag-begin":
                await self.session.execute("BEGIN")
                self.tagging = me
                await tag_in(self.session, fence, "chat")
            case "tag-commit":
                await self.session.execute("COMMIT")
                self.tagging = None
            case "ask":
                async with self.store.db.transaction() as conn:
                    [asked] = await stops.ask(conn, fence, "stop", "[]", 0, [("chat", False)])
                self.stops[me] = asked.id
            case "carry-out":
                async with self.store.db.connection() as conn:
                    await conn.execute("UPDATE stops SET due = weft_now() WHERE id = $1", self.stops[me])
                    await conn.execute("UPDATE stops SET due = 'infinity' WHERE id <> $1", self.stops[me])
                await self.store.carry_out()
            case "finish":
                last = self.store.last_write(run)
                last.lease = self.leases[me]
                await self.store.append(last)
            case "crash":
                if self.tagging == me:
                    await self.session.execute("ROLLBACK")
                    self.tagging = None
                async with self.store.db.connection() as conn:
                    await runs.release(conn, [fence])
                    [claimed] = await runs.claim(conn, self.store.worker, [self.store.project], 1)
                assert claimed.run == run
                self.leases[me] = claimed.lease

    async def ended(self) -> list[bool]:
        return [await self.store.status(run) in ("completed", "cancelled") for run in self.ids]


async def test_every_interleaving_of_two_runs_on_the_store(
    world: Store, soak: bool, ran: Callable[[str], None]
) -> None:
    """All without a crash; those with one all with `--soak`, and else a part of them."""
    every = list(interleavings((Run(), Run())))
    crashed = [way for way in every if any(what == "crash" for what, _ in way)]
    ways = [way for way in every if all(what != "crash" for what, _ in way)] + crashed[:: 1 if soak else ONE_OF]
    async with world.beside() as session:
        for way in ways:
            model: World = (Run(), Run())
            acted = Acted(world, await world.start(2), session)
            for step in way:
                await acted.act(step)
                model = follow(model, step)
                if step[0] in ("carry-out", "finish"):
                    assert await acted.ended() == [run.end is not None for run in model], way
            await world.cancel(*acted.ids)
    ran(f"{len(ways)} orders")
