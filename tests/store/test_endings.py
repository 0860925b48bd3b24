"""The one path by which runs end from outside: whole trees, against finishing, claiming and dying at any moment."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.store.world import BY_USER, LogLine, NodeCompleted, World, blocking, later
from weft.errors import FenceLost, NotFound, RunEnded
from weft.flow.events import ExecutionCompleted
from weft.store.pool import CONNECTION_LOST, Connection, Database
from weft.store.runs import endings, journal, runs, scopes, workers
from weft.store.runs.scopes import Ended, Ending

ROUNDS = 100


async def end(conn: Connection, world: World, *roots: UUID, ending: Ending = BY_USER) -> list[Ended]:
    async with conn.transaction():
        return await scopes.end_trees(conn, world.project, roots, ending)


async def test_a_cancel_is_final_and_keeps_its_first_reason(world: World) -> None:
    run = await world.start_one(nodes=["a"])
    assert [each.run for each in await world.cancel(run)] == [run]
    before = await world.events(run)
    async with world.db.connection() as conn:
        assert await end(conn, world, run, ending=Ending("cancelled", "Deadline reached", {"kind": "deadline"})) == []
        status = await runs.status(conn, world.project, run)
    assert await world.events(run) == before
    assert status is not None
    assert status.reason == "Cancelled by user"


async def test_a_run_can_be_failed_or_completed_from_outside(world: World) -> None:
    failed, completed = await world.start(2)
    async with world.db.connection() as conn:
        await end(conn, world, failed, ending=Ending("failed", "the run cannot be resumed"))
        await end(conn, world, completed, ending=Ending("completed", "nothing is left to do"))
        status = await runs.status(conn, world.project, failed)
    assert status is not None
    assert (status.status, status.error) == ("failed", "the run cannot be resumed")
    assert (await world.events(failed))[-1] == {"kind": "execution_failed", "error": "the run cannot be resumed"}
    assert (await world.kinds(completed))[-1] == "execution_completed"


async def test_fault_b07_a_queued_run_ends_and_is_never_claimed(world: World) -> None:
    run = await world.start_one(queued=True)
    [ended] = await world.cancel(run)
    assert ended.worker is None
    async with world.db.connection() as conn:
        assert await runs.claim(conn, world.worker, [world.project], 10) == []


async def test_fault_b17_ending_the_root_ends_all_below_and_names_it(world: World) -> None:
    root = await world.start_one()
    child = await world.start_one(below=root, nodes=["a"])
    grandchild = await world.start_one(below=child, queued=True)
    bystander = await world.start_one()
    ended = await world.cancel(root)
    assert {each.run for each in ended} == {root, child, grandchild}
    for run in (child, grandchild):
        last = (await world.events(run))[-1]
        assert last["kind"] == "execution_cancelled"
        assert str(root) in last["reason"]
        assert last["cause"] == {"kind": "user"}
    assert await world.live([root, child, grandchild, bystander]) == [bystander]
    async with world.db.connection() as conn:
        by = await conn.fetch("SELECT DISTINCT ended_by FROM scopes WHERE ended_at IS NOT NULL")
    assert [row["ended_by"] for row in by] == [root]


async def test_what_is_live_below_an_ended_scope_is_ended_too(world: World) -> None:
    root = await world.start_one()
    child = await world.start_one(below=root)
    grandchild = await world.start_one(below=child)
    await world.append(world.write(child, ExecutionCompleted()))
    async with world.db.connection() as conn:
        await conn.execute("UPDATE runs SET status = 'completed', ended_at = weft_now() WHERE id = $1", child)
        await conn.execute("UPDATE scopes SET ended_at = weft_now(), ended_by = id WHERE id = $1", child)
        await conn.execute("DELETE FROM ready WHERE run = $1", child)
    assert {each.run for each in await world.cancel(root)} == {root, grandchild}
    assert await world.status(child) == "completed"


async def test_roots_may_hang_below_each_other(world: World) -> None:
    root = await world.start_one()
    child = await world.start_one(below=root)
    leaf = await world.start_one(below=child)
    deep = await world.start_one()
    other = await world.start_one(below=deep)
    ended = await world.cancel(leaf, other, root, uuid4())
    assert {each.run for each in ended} == {root, child, leaf, other}
    assert await world.live([deep]) == [deep]


async def test_a_run_that_ends_takes_what_is_below_with_it(world: World) -> None:
    root = await world.start_one()
    child = await world.start_one(below=root, nodes=["a"])
    async with world.db.connection() as conn:
        last = world.last_write(root)
        assert await journal.append(conn, world.worker, [last]) == {}, "not in passing: it has children"
        assert await journal.append_alone(conn, world.worker, last) is None
        with pytest.raises(FenceLost):
            async with conn.transaction():
                await scopes.end_owned(conn, uuid4(), last)
        assert await world_status(conn, world, child) == "running"
        async with conn.transaction():
            ended = await scopes.end_owned(conn, world.worker, last)
    assert [each.run for each in ended] == [child]
    assert await world.status(root) == "completed"
    assert (await world.events(child))[-1]["cause"] == {"kind": "parent", "by": str(root)}


async def world_status(conn: Connection, world: World, run: UUID) -> str:
    status = await runs.status(conn, world.project, run)
    assert status is not None
    return status.status


async def test_nothing_is_made_below_an_ended_scope(world: World) -> None:
    root = await world.start_one()
    await world.cancel(root)
    with pytest.raises(RunEnded):
        await world.start(below=root)
    with pytest.raises(NotFound):
        await world.start(below=uuid4())


async def test_a_child_that_is_committed_while_the_end_waits_is_ended_too(world: World) -> None:
    root = await world.start_one()
    async with world.beside() as creator, world.beside() as canceller, world.beside() as watch:
        creating = creator.transaction()
        await creating.start()
        [child] = await runs.start_below(creator, world.project, None, root, [world.new()])
        async with blocking(watch, canceller, end(canceller, world, root)) as cancelling:
            await creating.commit()
            assert {each.run for each in await cancelling} == {root, child}


async def test_a_child_that_comes_while_the_end_is_held_is_refused(world: World) -> None:
    root = await world.start_one()
    async with world.beside() as creator, world.beside() as canceller, world.beside() as watch:
        cancel = canceller.transaction()
        await cancel.start()
        await scopes.end_trees(canceller, world.project, [root], BY_USER)

        async def create() -> list[UUID]:
            async with creator.transaction():
                return await runs.start_below(creator, world.project, None, root, [world.new()])

        async with blocking(watch, creator, create()) as creating:
            await cancel.commit()
            with pytest.raises(RunEnded):
                await creating


async def test_a_run_does_not_end_in_passing_while_its_first_child_is_being_made(world: World) -> None:
    root = await world.start_one()
    last = world.last_write(root)
    async with world.beside() as creator, world.beside() as owner, world.beside() as watch:
        creating = creator.transaction()
        await creating.start()
        await runs.start_below(creator, world.project, None, root, [world.new()])
        assert await journal.append(owner, world.worker, [last]) == {}
        async with blocking(watch, owner, journal.append_alone(owner, world.worker, last)) as alone:
            await creating.commit()
            assert await alone is None
    assert await world.status(root) == "running"


async def test_creating_below_does_not_hinder_the_owner(world: World) -> None:
    root = await world.start_one()
    async with world.holding() as creator:
        await runs.start_below(creator, world.project, None, root, [world.new()])
        assert await world.append(world.write(root, LogLine("n", (), "info", "x"))) == {root: 3}


async def test_race_21_the_cancel_commits_first_and_the_finish_writes_nothing(world: World) -> None:
    run = await world.start_one(nodes=["a"])
    last = world.last_write(run, NodeCompleted("a"))
    async with world.beside() as canceller, world.beside() as owner, world.beside() as watch:
        cancel = canceller.transaction()
        await cancel.start()
        await scopes.end_trees(canceller, world.project, [run], BY_USER)
        assert await journal.append(owner, world.worker, [last]) == {}
        async with blocking(watch, owner, journal.append_alone(owner, world.worker, last)) as finishing:
            await cancel.commit()
            assert await finishing is None
    assert (await world.kinds(run))[2:] == ["node_cancelled", "execution_cancelled"]


async def test_race_21_the_finish_commits_first_and_the_cancel_writes_nothing(world: World) -> None:
    run = await world.start_one(nodes=["a"])
    async with world.beside() as owner, world.beside() as canceller, world.beside() as watch:
        finish = owner.transaction()
        await finish.start()
        assert await journal.append(owner, world.worker, [world.last_write(run, NodeCompleted("a"))])
        async with blocking(watch, canceller, end(canceller, world, run)) as cancelling:
            await finish.commit()
            assert await cancelling == []
    assert (await world.kinds(run))[2:] == ["node_completed", "execution_completed"]
    async with world.db.connection() as conn:
        assert await workers.notices(conn, world.worker) == []


async def test_race_21_and_fault_b65_stop_and_finish_at_once_never_deadlock(world: World, database_url: str) -> None:
    """A thousand runs, each finished by its owner, alone or in a batch, while it is stopped by two others."""
    async with world.db.connection() as conn:
        name = await conn.fetchval("SELECT current_database()")
        await conn.execute(f"ALTER DATABASE {name} SET deadlock_timeout = '50ms'")
    db = await Database.open(database_url, pool_size=4)
    choose = random.Random(65)
    try:
        for _ in range(ROUNDS // 2):
            batch = await world.start(20, nodes=["a"])
            lasts = [world.last_write(run, NodeCompleted("a")) for run in batch]

            async def finish(lasts: list[journal.Write] = lasts) -> None:
                async with db.connection() as conn:
                    written = await journal.append(conn, world.worker, lasts)
                    for last in lasts:
                        if last.run not in written:
                            await journal.append_alone(conn, world.worker, last)

            async def stop(some: list[UUID]) -> None:
                await asyncio.sleep(choose.random() * 0.004)
                async with db.transaction() as conn:
                    await scopes.end_trees(conn, world.project, some, BY_USER)

            await asyncio.gather(finish(), stop(choose.sample(batch, 20)), stop(choose.sample(batch, 20)))
        async with db.connection() as conn:
            ends = dict(await conn.fetch("SELECT status, count(*) FROM runs GROUP BY status"))
            deadlocks = await conn.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", name)
    finally:
        await db.close()
    assert deadlocks == 0
    assert set(ends) <= {"completed", "cancelled"}
    assert sum(ends.values()) == 20 * (ROUNDS // 2)


async def test_race_22_nothing_is_written_after_the_terminal_event(world: World) -> None:
    run = await world.start_one(nodes=["a"])
    await world.cancel(run)
    before = await world.events(run)
    late = world.write(run, NodeCompleted("a"))
    assert await world.append(late) == {}
    assert await world.append(late, world.last_write(run)) == {}
    async with world.db.connection() as conn:
        assert await journal.append_alone(conn, world.worker, late) is None
    assert await world.events(run) == before


async def test_race_23_a_cancel_that_dies_before_its_commit_has_written_nothing(world: World) -> None:
    run = await world.start_one(nodes=["a", "b"])
    async with world.beside() as canceller, world.beside() as watch:
        cancel = canceller.transaction()
        await cancel.start()
        await scopes.end_trees(canceller, world.project, [run], BY_USER)
        await watch.execute("SELECT pg_terminate_backend($1)", canceller.get_server_pid())
        with pytest.raises(CONNECTION_LOST):
            await cancel.commit()
    assert await world.kinds(run) == ["execution_started", "node_started", "node_started"]
    assert await world.status(run) == "running"
    await world.cancel(run)
    assert (await world.kinds(run))[-3:] == ["node_cancelled", "node_cancelled", "execution_cancelled"]


async def test_race_27_the_owner_finds_a_notice_and_nobody_else_does(world: World) -> None:
    owned, queued = await world.start_one(), await world.start_one(queued=True)
    await world.cancel(owned, queued)
    async with world.db.connection() as conn:
        assert await workers.notices(conn, uuid4()) == []
        told = [(world.project, owned, "ended")]
        for _ in range(2):
            assert await workers.notices(conn, world.worker) == told, "it stands until it is heeded"
        await workers.heed(conn, world.worker, await workers.notices(conn, world.worker))
        assert await workers.notices(conn, world.worker) == []
        status = await runs.status(conn, world.project, owned)
    assert status is not None
    assert (status.worker, status.lease) == (world.worker, 1), "a cancel does not move ownership"


async def test_race_28_a_run_that_is_being_ended_is_not_claimed(world: World) -> None:
    run, free = await world.start_one(queued=True), await world.start_one(queued=True)
    async with world.holding() as canceller, world.beside() as worker:
        await scopes.end_trees(canceller, world.project, [run], BY_USER)
        claimed = await runs.claim(worker, world.worker, [world.project], 10)
        assert [each.run for each in claimed] == [free]
    async with world.db.connection() as conn:
        assert await runs.claim(conn, world.worker, [world.project], 10) == []


async def test_race_28_a_run_that_was_just_claimed_is_ended_under_its_new_owner(world: World) -> None:
    run = await world.start_one(queued=True)
    async with world.beside() as worker, world.beside() as canceller, world.beside() as watch:
        claim = worker.transaction()
        await claim.start()
        [claimed] = await runs.claim(worker, world.worker, [world.project], 10)
        async with blocking(watch, canceller, end(canceller, world, run)) as cancelling:
            await claim.commit()
            [ended] = await cancelling
        assert ended.worker == world.worker
        assert await workers.notices(watch, world.worker) == [(world.project, run, "ended")]
        late = world.write(run, LogLine("n", (), "info", "x"), lease=claimed.lease)
        assert await journal.append(watch, world.worker, [late]) == {}


async def test_overlapping_trees_ended_from_all_sides_do_not_deadlock(world: World, database_url: str) -> None:
    """Step 2: by depth, whatever the order in which the roots were named."""
    db = await Database.open(database_url, pool_size=4)
    choose = random.Random(2)
    try:
        for _ in range(ROUNDS // 4):
            level = await world.start(2)
            everything = list(level)
            for _ in range(3):
                level = [child for parent in level for child in await world.start(2, below=parent)]
                everything += level

            async def stop(roots: list[UUID]) -> None:
                async with db.transaction() as conn:
                    await scopes.end_trees(conn, world.project, roots, BY_USER)

            await asyncio.gather(*(stop(choose.sample(everything, 5)) for _ in range(4)))
            await world.cancel(*everything)
        async with db.connection() as conn:
            name = await conn.fetchval("SELECT current_database()")
            assert await conn.fetchval("SELECT deadlocks FROM pg_stat_database WHERE datname = $1", name) == 0
            assert await conn.fetchval("SELECT count(*) FROM runs WHERE ended_at IS NULL") == 0
    finally:
        await db.close()


async def test_deadlines_come_due_in_their_order_and_bind_what_is_below(world: World, database_url: str) -> None:
    root = await world.start_one(deadline=timedelta(minutes=10))
    child = await world.start_one(below=root, deadline=timedelta(hours=1))
    soon = await world.start_one(below=root, deadline=timedelta(minutes=1))
    never = await world.start_one()
    ended = await world.start_one(deadline=timedelta(seconds=1))
    await world.finish(ended)
    async with world.db.connection() as conn:
        left = await scopes.next_due(conn)
        assert left is not None
        assert timedelta(0) < left <= timedelta(minutes=1)
        assert await scopes.due_deadlines(conn, 10) == []
    async with later(database_url, timedelta(minutes=5)) as db, db.connection() as conn:
        assert await scopes.due_deadlines(conn, 10) == [(world.project, soon)]
        left = await scopes.next_due(conn)
        assert left is not None
        assert left < timedelta(0)
    async with later(database_url, timedelta(minutes=30)) as db:
        async with db.connection() as conn:
            due = await scopes.due_deadlines(conn, 10)
            assert due[0] == (world.project, soon)
            assert {run for _, run in due} == {soon, root, child}
        deadline = await endings.end_runs(db, world.project, [root], "Deadline reached", {"kind": "deadline"})
        assert {each.run for each in deadline.ended} == {soon, root, child}
        async with db.connection() as conn:
            assert await scopes.next_due(conn) is None
    assert await world.live([never]) == [never]
