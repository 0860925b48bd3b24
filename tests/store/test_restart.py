"""The server goes away and comes back: everything that holds a connection finds it again by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.store.world import World, until
from weft.errors import StoreUnreachable
from weft.store.embedded import EmbeddedServer
from weft.store.migrate import migrate
from weft.store.notify import Listener, Notice, Notifier
from weft.store.pool import Database
from weft.store.runs import workers


async def test_fault_b94_a_restart_of_the_server_is_survived_by_all_connections(server_folder: Path) -> None:
    server = EmbeddedServer(server_folder, settings={"fsync": "off"})
    await asyncio.to_thread(server.attach)
    db = await Database.open(server.dsn, pool_size=1)
    async with db.connection() as conn:
        await migrate(conn)
    await db.close()
    heard: asyncio.Queue[Notice] = asyncio.Queue()
    resyncs: asyncio.Queue[None] = asyncio.Queue()
    async with World.open(server.dsn) as world:
        run = await world.start_one()
        async with (
            Listener(world.db, heard.put_nowait, lambda: resyncs.put_nowait(None)),
            Notifier(world.db) as notifier,
            workers.death_lock(world.db, world.worker),
        ):
            await resyncs.get()
            notifier.send(Notice("ready", 1))
            assert await heard.get() == Notice("ready", 1)

            await asyncio.to_thread(server.leave)
            with pytest.raises(StoreUnreachable):
                await world.status(run)
            notifier.send(Notice("ready", 2))
            again = EmbeddedServer(server_folder, settings={"fsync": "off"})
            await asyncio.to_thread(again.attach)

            assert await world.finish(run) == 3
            await resyncs.get()
            async with world.db.connection() as conn:
                assert await workers.renew(conn, world.worker)
                held = "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'"
                await until(lambda: conn.fetchval(held))
                assert await workers.without_death_lock(conn) == []
            notifier.send(Notice("ready", 3))
            seen = set()
            while Notice("ready", 3) not in seen:
                seen.add(await heard.get())
    await asyncio.to_thread(again.leave)
