"""Who is alive, how a death is noticed, and what becomes of the runs of the dead."""

from __future__ import annotations

from datetime import timedelta

from tests.store.world import BY_USER, LEASE, LogLine, World, blocking, later, until
from weft.store.runs import runs, scopes, workers


async def test_a_worker_is_alive_while_its_lease_is(world: World, database_url: str) -> None:
    async with world.db.connection() as conn:
        [alive] = await workers.alive(conn, world.project)
        assert (alive.id, alive.host, alive.pid) == (world.worker, "here", 1)
        assert alive.number == await workers.number(conn, world.worker)
        assert await workers.alive(conn, world.project + 1) == []
    async with later(database_url, LEASE * 2) as db, db.connection() as conn:
        assert await workers.alive(conn, world.project) == []
        assert await workers.renew(conn, world.worker), "nobody has given it up yet"
        assert len(await workers.alive(conn, world.project)) == 1


async def test_a_lapsed_lease_gives_the_runs_back(world: World, database_url: str) -> None:
    run, queued = await world.start_one(), await world.start_one(queued=True)
    async with world.db.connection() as conn:
        assert await workers.release_dead(conn, []) == []
    async with later(database_url, LEASE + timedelta(seconds=1)) as db, db.connection() as conn:
        fresh = await workers.register(conn, host="b", pid=2, projects=[world.project], lease=LEASE)
        assert await workers.release_dead(conn, []) == [(world.project, run, world.worker)]
        assert not await workers.renew(conn, world.worker)
        assert await workers.release_dead(conn, []) == []
        claimed = await runs.claim(conn, fresh, [world.project], 10)
        assert {(each.run, each.lease) for each in claimed} == {(run, 2), (queued, 1)}
    assert await world.append(world.write(run, LogLine("n", (), "info", "late"))) == {}


async def test_a_held_lock_does_not_prolong_a_lapsed_lease(world: World, database_url: str) -> None:
    run = await world.start_one()
    async with (
        workers.death_lock(world.db, world.worker),
        later(database_url, LEASE * 2) as db,
        db.connection() as conn,
    ):
        assert await workers.without_death_lock(conn) == []
        assert await workers.release_dead(conn, []) == [(world.project, run, world.worker)]


async def test_the_death_lock_is_seen_by_others_and_gone_with_its_session(world: World) -> None:
    run = await world.start_one()
    async with world.db.connection() as conn:
        assert await workers.without_death_lock(conn) == [], "a worker that never held a lock is not missed"
    async with workers.death_lock(world.db, world.worker), world.db.connection() as conn:
        assert await workers.without_death_lock(conn) == []
    async with world.db.connection() as conn:
        missing = await until(lambda: workers.without_death_lock(conn))
        assert missing == [world.worker]
        assert await workers.release_dead(conn, missing) == [(world.project, run, world.worker)]
        assert await workers.without_death_lock(conn) == []


async def test_a_lost_death_lock_is_taken_again(world: World) -> None:
    async with workers.death_lock(world.db, world.worker), world.beside() as conn:
        find = "SELECT pid FROM pg_stat_activity WHERE application_name = 'weft test death lock'"
        first = await conn.fetchval(find)
        await conn.execute("SELECT pg_terminate_backend($1)", first)
        await until(lambda: conn.fetchval(f"{find} AND pid <> $1", first))
        held = "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'"
        await until(lambda: conn.fetchval(held))
        assert await workers.without_death_lock(conn) == []
        assert await workers.renew(conn, world.worker)


async def test_what_a_dying_worker_claimed_meanwhile_is_found_by_the_next_sweep(world: World) -> None:
    """A claim whose statement began before the worker was given up commits after the sweep."""
    run = await world.start_one(queued=True)
    async with world.beside() as worker, world.db.connection() as conn:
        claim = worker.transaction()
        await claim.start()
        assert len(await runs.claim(worker, world.worker, [world.project], 1)) == 1
        assert await workers.release_dead(conn, [world.worker]) == []
        await claim.commit()
        assert await workers.release_dead(conn, []) == [(world.project, run, world.worker)]


async def test_a_run_that_is_being_ended_does_not_hold_up_a_sweep(world: World) -> None:
    ending, left = await world.start(2)
    async with world.beside() as canceller, world.db.connection() as conn:
        async with canceller.transaction():
            await scopes.end_trees(canceller, world.project, [ending], BY_USER)
            freed = await workers.release_dead(conn, [world.worker])
        assert freed == [(world.project, left, world.worker)]
        assert await workers.release_dead(conn, []) == []
        await workers.forget(conn)
        assert await workers.notices(conn, world.worker) == [], "nobody will read them"


async def test_leaving_gives_back_what_is_still_owned(world: World) -> None:
    run = await world.start_one()
    async with world.db.connection() as conn:
        assert await workers.leave(conn, world.worker) == [(world.project, run)]
        assert await workers.alive(conn, world.project) == []
        assert not await workers.renew(conn, world.worker)
    assert await world.status(run) == "queued"


async def test_a_worker_that_was_given_up_comes_back_with_nothing(world: World) -> None:
    """Also what the sweep passed over, since somebody held it, is not the worker's any more."""
    run, held = await world.start(2)
    async with world.beside() as holder, world.beside() as watch, world.beside() as worker:
        holding = holder.transaction()
        await holding.start()
        await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", held)
        assert await workers.release_dead(watch, [world.worker]) == [(world.project, run, world.worker)]
        async with blocking(watch, worker, workers.revive(worker, world.worker)) as reviving:
            await holding.commit()
            await reviving
        assert await runs.owned(watch, world.worker) == []
        assert await workers.renew(watch, world.worker)
        assert len(await runs.claim(watch, world.worker, [world.project], 10)) == 2


async def test_long_dead_workers_are_forgotten(world: World, database_url: str) -> None:
    async with world.db.connection() as conn:
        await workers.leave(conn, world.worker)
    async with later(database_url, timedelta(days=2)) as db, db.connection() as conn:
        await workers.forget(conn)
        assert await conn.fetchval("SELECT count(*) FROM workers") == 0
