"""Notices: they arrive, they are gathered, and a lost connection is followed by a look at everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from tests.store.world import World
from weft.store.notify import KEPT_WHILE_AWAY, Listener, Notice, Notifier, publish
from weft.store.pool import Database


class Ear:
    """What a listener heard, and how often it was told to look at everything."""

    def __init__(self) -> None:
        self.heard: list[Notice] = []
        self.resyncs = 0
        self._changed = asyncio.Event()

    def hear(self, notice: Notice) -> None:
        self.heard.append(notice)
        self._changed.set()

    def resync(self) -> None:
        self.resyncs += 1
        self._changed.set()

    async def until(self, notices: int = 0, resyncs: int = 0) -> None:
        while len(self.heard) < notices or self.resyncs < resyncs:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def listening(world: World) -> AsyncIterator[Ear]:
    ear = Ear()
    async with Listener(world.db, ear.hear, ear.resync):
        await ear.until(resyncs=1)
        yield ear


def some_notices(world: World, count: int) -> list[Notice]:
    return [Notice("ended", world.project, uuid4(), world.worker) for _ in range(count)]


async def test_every_kind_arrives_as_it_was_sent(world: World) -> None:
    sent = [
        Notice("ready", world.project),
        Notice("stop", world.project, uuid4()),
        Notice("ended", world.project, uuid4(), uuid4()),
    ]
    async with listening(world) as ear, Notifier(world.db) as notifier:
        for notice in sent:
            notifier.send(notice)
        await ear.until(notices=3)
    assert ear.heard == sent


async def test_many_are_gathered_into_few_and_the_same_goes_out_once(world: World) -> None:
    sent = some_notices(world, 1000)
    async with listening(world) as ear, Notifier(world.db) as notifier:
        for notice in sent:
            notifier.send(notice)
            notifier.send(notice)
            notifier.send(Notice("ready", world.project))
        await ear.until(notices=1001)
        await notifier.flushed()
    assert len(ear.heard) == 1001
    assert set(ear.heard) == {*sent, Notice("ready", world.project)}


async def test_what_was_sent_before_leaving_goes_out(world: World) -> None:
    async with listening(world) as ear:
        async with Notifier(world.db) as notifier:
            notifier.send(Notice("ready", world.project))
        await ear.until(notices=1)


async def test_a_few_can_be_sent_without_a_notifier(world: World) -> None:
    async with listening(world) as ear:
        async with world.db.connection() as conn:
            await publish(conn, [Notice("stop", 3)])
            await publish(conn, [])
        await ear.until(notices=1)
    assert ear.heard == [Notice("stop", 3)]


async def test_what_a_newer_weft_says_is_passed_over(world: World) -> None:
    async with listening(world) as ear:
        async with world.db.connection() as conn:
            await conn.execute("SELECT pg_notify('weft', E'thaw 1 - -\\nstop 2 - -')")
        await ear.until(notices=1)
    assert ear.heard == [Notice("stop", 2)]


async def kill(world: World, name: str) -> None:
    async with world.db.connection() as conn:
        find = "SELECT pid FROM pg_stat_activity WHERE application_name = $1"
        pid = await conn.fetchval(find, f"weft test {name}")
        await conn.execute("SELECT pg_terminate_backend($1)", pid)


async def test_fault_b62_a_listener_listens_on_while_connections_go_back_to_the_pool(
    world: World, database_url: str
) -> None:
    """Giving a connection back resets its session and ends its LISTEN: the listener's is none of the pool's."""
    db = await Database.open(database_url, pool_size=1)
    ear = Ear()
    try:
        async with Listener(db, ear.hear, ear.resync):
            await ear.until(resyncs=1)
            for number, notice in enumerate(some_notices(world, 5), start=1):
                async with db.connection() as conn:
                    await publish(conn, [notice])
                async with db.connection() as conn:
                    assert await conn.fetch("SELECT * FROM pg_listening_channels()") == []
                async with asyncio.timeout(1):
                    await ear.until(notices=number)
        assert ear.resyncs == 1
    finally:
        await db.close()


async def test_race_56_and_fault_b94_a_listener_that_was_cut_off_looks_at_everything(world: World) -> None:
    async with listening(world) as ear:
        for time in (2, 3, 4):
            await kill(world, "listener")
            await ear.until(resyncs=time)
        async with world.db.connection() as conn:
            await publish(conn, [Notice("ready", 1)])
        await ear.until(notices=1)
    assert ear.resyncs == 4


async def test_a_notifier_that_was_cut_off_sends_again(world: World) -> None:
    async with listening(world) as ear, Notifier(world.db) as notifier:
        notifier.send(Notice("ready", 1))
        await ear.until(notices=1)
        await kill(world, "notifier")
        notifier.send(Notice("ready", 2))
        await ear.until(notices=2)
    assert ear.heard[-1] == Notice("ready", 2)


async def test_what_piles_up_is_bounded(world: World) -> None:
    async with listening(world) as ear, Notifier(world.db) as notifier:
        for notice in some_notices(world, KEPT_WHILE_AWAY + 500):
            notifier.send(notice)
        await ear.until(notices=KEPT_WHILE_AWAY)
        await notifier.flushed()
    assert len(ear.heard) == KEPT_WHILE_AWAY
