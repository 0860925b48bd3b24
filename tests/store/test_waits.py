"""Waits: parking in the group commit, answers, and what those are told who come second or too late."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from uuid import UUID

import pytest

from tests.store.parking import answer, name, park, parked, resolutions, suspended, waiting
from tests.store.world import BY_USER, LogLine, NodeCompleted, World, blocking
from weft.errors import AlreadyAnswered, Conflict, FenceLost, NotFound, RunEnded, WaitGone
from weft.flow.events import ExecutionCompleted, NodeSkipped, encode
from weft.lang.graph import MISSING
from weft.store import projects
from weft.store.migrate import migrate
from weft.store.pool import Connection, Database
from weft.store.runs import journal, runs, scopes, tags, waits, workers
from weft.store.runs.journal import Saved, Write


async def claim(world: World) -> runs.Claimed:
    async with world.db.connection() as conn:
        [claimed] = await runs.claim(conn, world.worker, [world.project], 10)
    return claimed


# --- parking ----------------------------------------------------------------------------------------------


async def test_a_parked_run_holds_nothing(world: World) -> None:
    [run] = await parked(world)
    assert await world.status(run) == "waiting"
    async with world.db.connection() as conn:
        status = await runs.status(conn, world.project, run)
        assert await conn.fetchval("SELECT count(*) FROM ready") == 0
        assert await runs.claim(conn, world.worker, [world.project], 10) == []
        assert await runs.owned(conn, world.worker) == []
        await workers.leave(conn, world.worker)
        [wait] = await waits.of_run(conn, world.project, run)
    assert status is not None
    assert status.worker is None
    assert (wait.node, wait.frames, wait.call, wait.part, wait.kind, wait.mode) == ("ask", "[]", 0, 0, "form", None)
    assert await world.kinds(run) == ["execution_started", "node_started", "suspension_registered", "node_suspended"]


async def test_one_statement_parks_some_and_lets_others_go_on_and_end(world: World) -> None:
    parks, goes_on, ends, stale = await world.start(4, nodes=["ask"])
    last = Write(
        world.project, ends, 1, [encode(NodeCompleted("ask")), encode(ExecutionCompleted())], "[]", "completed"
    )
    async with world.db.connection() as conn:
        saved = await journal.append(
            conn,
            world.worker,
            [
                suspended(world, parks),
                world.write(goes_on, LogLine("ask", (), "info", "x"), open_firings='[["ask"]]'),
                last,
                suspended(world, stale, lease=7),
            ],
        )
    assert saved == {parks: Saved(5, True), goes_on: Saved(4, False), ends: Saved(5, False)}
    assert [await world.status(run) for run in (parks, goes_on, ends, stale)] == [
        "waiting",
        "running",
        "completed",
        "running",
    ]
    assert await waiting(world, stale) == []


async def test_parking_may_be_a_write_of_its_own_without_events(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        saved = await journal.append(conn, world.worker, [suspended(world, run, parks=False)])
        assert saved == {run: Saved(5, False)}
        alone = Write(world.project, run, 1, [], '[["ask"]]', parks=True, after=4)
        assert await journal.append_alone(conn, world.worker, alone) == Saved(5, True)
        assert await journal.append_alone(conn, world.worker, alone) is None, "it is nobody's"
    assert await world.status(run) == "waiting"


async def test_race_50_a_run_with_a_branch_that_goes_on_reads_running(world: World) -> None:
    run = await world.start_one(nodes=["ask", "work"])
    async with world.db.connection() as conn:
        write = suspended(world, run, parks=False, open_nodes=["ask", "work"], after=3)
        await journal.append(conn, world.worker, [write])
        assert await world_status(conn, world, run) == "running"
        done = Write(world.project, run, 1, [encode(NodeCompleted("work"))], '[["ask"]]', parks=True, after=5)
        assert await journal.append(conn, world.worker, [done]) == {run: Saved(7, True)}
        assert await world_status(conn, world, run) == "waiting"


async def world_status(conn: Connection, world: World, run: UUID) -> str:
    found = await runs.status(conn, world.project, run)
    assert found is not None
    return found.status


async def test_b41_an_answer_before_the_run_is_parked_keeps_it_going(world: World) -> None:
    """The wait is visible, the run is not parked yet; then parking finds that something came in between."""
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [suspended(world, run, parks=False)])
        answered = await waits.answer(conn, name(run), '"early"', "Ann")
        assert answered.worker == world.worker
        assert await workers.notices(conn, world.worker) == [(world.project, run, "answered")]
        parks = Write(world.project, run, 1, [], '[["ask"]]', parks=True, after=4)
        assert await journal.append(conn, world.worker, [parks]) == {run: Saved(6, False)}
        assert await world_status(conn, world, run) == "running"
        [row] = await journal.read(conn, world.project, run, 4)
        assert json.loads(row.events)[0]["value"] == "early"


async def test_race_36_an_answer_stands_behind_its_registration(world: World) -> None:
    """The answer comes at the earliest moment, while the registration is being committed."""
    run = await world.start_one(nodes=["ask"])
    async with world.beside() as watch, world.beside() as person, world.holding() as owner:
        await journal.append(owner, world.worker, [suspended(world, run)])
        with pytest.raises(NotFound):
            await waits.answer(person, name(run), "1", "Ann")
        # One that knows the wait all the same waits for the commit, and looks again with what it finds then.
        wait = waits.Wait(
            world.project, run, "ask", "[]", 0, 0, name(run), "form", "{}", None, None, None, await waits.now(watch)
        )
        settling = waits.settle(person, waits.Resolution(wait, "Ann", "1"))
        async with blocking(watch, person, settling) as answering:
            await owner.execute("COMMIT; BEGIN")
            assert (await answering).worker is None
    kinds = await world.kinds(run)
    assert kinds.index("suspension_registered") < kinds.index("suspension_resolved")


async def test_race_37_a_registration_that_is_repeated_makes_no_second_wait(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    write = suspended(world, run, parks=False)
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [write])
        again = Write(world.project, run, 1, [], '[["ask"]]', waits=write.waits)
        await journal.append(conn, world.worker, [again])
    assert await waiting(world, run) == [name(run)]


async def test_waits_are_erased_with_the_write_that_forgets_them(world: World) -> None:
    run = await world.start_one(nodes=["ask", "other"])
    both = ["ask", "other"]
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [suspended(world, run, "form", "form", parks=False, open_nodes=both)])
        await journal.append(conn, world.worker, [suspended(world, run, node="other", parks=False, open_nodes=both)])
        skipped = Write(
            world.project,
            run,
            1,
            [encode(NodeSkipped("ask", (), "wait_skipped"))],
            '[["other"]]',
            forget=[name(run), name(run, 1)],
        )
        await journal.append(conn, world.worker, [skipped])
    assert await waiting(world, run) == [name(run, node="other")]
    with pytest.raises(WaitGone, match="the node that waited for it has ended") as gone:
        await answer(world, name(run))
    assert gone.value.status is None


async def test_who_drives_it_no_more_parks_nothing(world: World) -> None:
    """B87: the old worker's parking is refused after the run was answered and claimed anew."""
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [suspended(world, run, parks=False)])
        other = await workers.register(conn, host="b", pid=2, projects=[world.project], lease=timedelta(seconds=60))
        await runs.release(conn, [world.fence(run)])
        await waits.answer(conn, name(run), "1", "Ann")
        assert [each.run for each in await runs.claim(conn, other, [world.project], 1)] == [run]
        late = Write(world.project, run, 1, [], '[["ask"]]', parks=True, after=4)
        assert await journal.append(conn, world.worker, [late]) == {}
        assert await journal.append_alone(conn, world.worker, late) is None
    assert await world.status(run) == "running"


async def test_a_parked_run_can_be_claimed_by_nobody_and_written_by_nobody(world: World) -> None:
    [run] = await parked(world)
    async with world.db.connection() as conn:
        assert await journal.append(conn, world.worker, [world.write(run, LogLine("ask", (), "info", "late"))]) == {}
        with pytest.raises(FenceLost):
            await tags.tag(conn, world.fence(run), ["a"], "{}")
        await runs.release(conn, [world.fence(run)])
        await workers.release_dead(conn, [world.worker])
    assert await world.status(run) == "waiting"


# --- answering --------------------------------------------------------------------------------------------


async def test_an_answer_wakes_the_run(world: World) -> None:
    [run] = await parked(world)
    assert await answer(world, name(run), '{"name":"Bob","age":1.50}') == (world.project, run, None, name(run))
    assert await world.status(run) == "queued"
    assert await waiting(world, run) == []
    async with world.db.connection() as conn:
        [row] = await journal.read(conn, world.project, run, 4)
    assert row.events == (
        f'[{{"kind":"suspension_resolved","node":"ask","call":0,"token":"{name(run)}",'
        '"value":{"name":"Bob","age":1.50},"by":"Ann"}]'
    ), "as it was written, to the last digit"
    claimed = await claim(world)
    assert (claimed.run, claimed.lease, claimed.next_seq) == (run, 2, 6)
    await park(world, run, call=1, lease=2, after=5)
    assert await answer(world, name(run, call=1)) == (world.project, run, None, name(run, call=1))


async def test_race_34_of_two_answers_at_once_one_counts(world: World) -> None:
    """The other is told when it was answered, what, and by whom."""
    [run] = await parked(world)
    async with world.beside() as watch, world.beside() as second, world.holding() as first:
        wait = await waits.find(second, name(run))
        await waits.answer(first, name(run), '{"is":"first"}', "Ann")
        late = waits.settle(second, waits.Resolution(wait, "Bob", '"second"'))
        async with blocking(watch, second, late) as answering:
            await first.execute("COMMIT; BEGIN")
            with pytest.raises(AlreadyAnswered, match=r"answered at \d{4}-.* by Ann") as error:
                await answering
    assert (error.value.by, error.value.value) == ("Ann", {"is": "first"})
    assert error.value.code == "already-answered"
    assert error.value.exit_status == 5
    async with world.db.connection() as conn:
        assert timedelta(0) < await waits.now(conn) - error.value.at < timedelta(seconds=60)
    [resolution] = await resolutions(world, run)
    assert resolution["value"] == {"is": "first"}
    with pytest.raises(AlreadyAnswered):
        await answer(world, name(run))


async def test_race_34_many_times_without_anybody_forcing_it(world: World) -> None:
    rounds = 50
    all_of = await parked(world, rounds)
    async with world.beside() as one, world.beside() as two:
        for run in all_of:
            outcomes = await asyncio.gather(
                waits.answer(one, name(run), "1", "one"),
                waits.answer(two, name(run), "2", "two"),
                return_exceptions=True,
            )
            [said] = [each for each in outcomes if isinstance(each, waits.Answered)]
            [refused] = [each for each in outcomes if isinstance(each, AlreadyAnswered)]
            [resolution] = await resolutions(world, run)
            assert refused.value == resolution["value"]
            assert said.run == run


async def test_race_35_what_was_answered_is_gone_in_the_same_moment(world: World) -> None:
    """A process that dies in the middle of an answer has done nothing; repeating it resumes once."""
    [run] = await parked(world)
    async with world.beside() as dying:
        await dying.execute("BEGIN")
        await waits.answer(dying, name(run), '"lost"', "Ann")
    assert (await answer(world, name(run), '"kept"')).run == run
    assert [each["value"] for each in await resolutions(world, run)] == ["kept"]
    async with world.db.connection() as conn:
        assert await conn.fetchval("SELECT count(*) FROM ready") == 1


async def test_after_a_cancel_an_answer_is_told_who_ended_it_why_and_when(world: World) -> None:
    [run] = await parked(world)
    await world.cancel(run)
    with pytest.raises(WaitGone, match=r"was cancelled at .* Cancelled by user") as error:
        await answer(world, name(run))
    assert (error.value.status, error.value.reason, error.value.cause) == (
        "cancelled",
        "Cancelled by user",
        {"kind": "user"},
    )
    assert error.value.run == str(run)
    assert (error.value.code, error.value.exit_status) == ("wait-gone", 5)
    async with world.db.connection() as conn:
        assert timedelta(0) < await waits.now(conn) - error.value.at < timedelta(seconds=60)


async def test_what_was_answered_before_the_end_stays_answered(world: World) -> None:
    [run] = await parked(world)
    await answer(world, name(run), "true")
    await world.cancel(run)
    with pytest.raises(AlreadyAnswered) as error:
        await answer(world, name(run), "false")
    assert error.value.value is True


@pytest.mark.parametrize("token", ["", "x", "0" * 63, "é" * 64, "0" * 64, "12ab" * 16])
async def test_a_token_that_never_was_is_not_found(world: World, token: str) -> None:
    await parked(world)
    with pytest.raises(NotFound):
        await answer(world, token)


async def test_a_forged_token_of_a_run_is_not_found_even_where_the_run_has_ended(world: World) -> None:
    [run] = await parked(world)
    forged = name(run)[:-1] + ("0" if name(run)[-1] != "0" else "1")
    with pytest.raises(NotFound):
        await answer(world, forged)
    await world.cancel(run)
    with pytest.raises(NotFound):
        await answer(world, forged)
    with pytest.raises(WaitGone):
        await answer(world, name(run))


async def test_an_answer_finds_its_wait_in_whatever_project(world: World) -> None:
    async with world.db.connection() as conn:
        other = await projects.ensure(conn, "other", "Other")
    async with world.db.transaction() as conn:
        [run] = await runs.start(conn, other, world.worker, [world.new()])
        write = suspended(world, run, after=1)
        write.project, write.open_firings = other, "[]"
        await journal.append(conn, world.worker, [write])
    assert (await answer(world, name(run))).project == other


async def test_skipping_and_a_null_are_different_answers(world: World) -> None:
    skipped, null = await parked(world, 2)
    await answer(world, name(skipped), None, skipped=True)
    await answer(world, name(null), "null")
    [of_skipped], [of_null] = await resolutions(world, skipped), await resolutions(world, null)
    assert of_skipped["skipped"] is True
    assert "value" not in of_skipped
    assert of_null["value"] is None
    with pytest.raises(AlreadyAnswered, match=r"skipped at .* by Ann") as error:
        await answer(world, name(skipped))
    assert (error.value.skipped, error.value.value) == (True, MISSING)
    with pytest.raises(AlreadyAnswered) as error:
        await answer(world, name(null))
    assert error.value.value is None


async def test_b43_the_loser_of_a_race_is_erased_in_the_same_step(world: World) -> None:
    [run] = await parked(world, kinds=("form", "timer", "webhook"))
    await answer(world, name(run, 1))
    assert await waiting(world, run) == []
    for loser in (0, 2):
        with pytest.raises(WaitGone, match="the timer beside it came first"):
            await answer(world, name(run, loser))
    with pytest.raises(AlreadyAnswered):
        await answer(world, name(run, 1))


async def test_of_all_parts_the_others_stay_until_one_times_out_or_is_skipped(world: World) -> None:
    three = ("form", "form", "webhook")
    answered, timed_out, skipped = await parked(world, 3, kinds=three, mode="all")
    for run in (answered, timed_out, skipped):
        await answer(world, name(run, 1))
        assert set(await waiting(world, run)) == {name(run, 0), name(run, 2)}
    await answer(world, name(timed_out, 0), None, timed_out=True)
    await answer(world, name(skipped, 2), None, skipped=True)
    assert await waiting(world, timed_out) == await waiting(world, skipped) == []
    await answer(world, name(answered, 0))
    await answer(world, name(answered, 2))
    assert len(await resolutions(world, answered)) == 3


async def test_an_answer_leaves_what_other_nodes_of_the_run_wait_for(world: World) -> None:
    run = await world.start_one(nodes=["ask", "other"])
    both = ["ask", "other"]
    async with world.db.connection() as conn:
        for node in both:
            write = suspended(world, run, "form", "form", node=node, parks=False, open_nodes=both)
            await journal.append(conn, world.worker, [write])
    await answer(world, name(run, 0))
    assert set(await waiting(world, run)) == {name(run, 0, node="other"), name(run, 1, node="other")}


async def test_race_48_only_a_timer_is_woken(world: World) -> None:
    timer, form = await world.start(2, nodes=["ask"])
    async with world.db.connection() as conn:
        late = await waits.now(conn) + timedelta(days=3)
        await journal.append(conn, world.worker, [suspended(world, timer, "timer", due=late)])
        await journal.append(conn, world.worker, [suspended(world, form, due=late)])
        await waits.wake(conn, await waits.find(conn, name(timer)), "Ann")
        with pytest.raises(Conflict, match="this is a form"):
            await waits.wake(conn, await waits.find(conn, name(form)), "Ann")
    [woken] = await resolutions(world, timer)
    assert woken["by"] == "Ann"
    assert woken["value"].endswith("Z")
    assert await world.status(form) == "waiting"


# --- the end ----------------------------------------------------------------------------------------------


async def test_fault_b02_a_stop_takes_200_parked_forms_in_one_transaction(world: World) -> None:
    nodes = [f"ask{number}" for number in range(200)]
    run = await world.start_one(nodes=[*nodes, "slow"])
    async with world.db.connection() as conn:
        for node in nodes:
            write = suspended(world, run, node=node, parks=False, open_nodes=[*nodes, "slow"])
            await journal.append(conn, world.worker, [write])
        assert len(await waits.forms(conn, [world.project], 1000)) == 200
    async with world.beside() as watch:
        async with world.holding() as canceller:
            await scopes.end_trees(canceller, world.project, [run], BY_USER)
            assert len(await waits.forms(watch, [world.project], 1000)) == 200, "all go with the commit"
        assert await waits.forms(watch, [world.project], 1000) == []
        late = world.write(run, NodeCompleted("slow"))
        assert await journal.append(watch, world.worker, [late]) == {}
        with pytest.raises(WaitGone):
            await waits.answer(watch, name(run, node="ask7"), "1", "Ann")
    assert (await world.kinds(run)).count("node_cancelled") == 201


async def test_b21_a_parked_run_is_stopped_with_no_worker_alive(world: World) -> None:
    [run] = await parked(world)
    async with world.db.connection() as conn:
        await workers.leave(conn, world.worker)
    [ended] = await world.cancel(run)
    assert ended.worker is None
    async with world.db.connection() as conn:
        assert await waits.forms(conn, [world.project], 10) == []
    assert (await world.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_the_runs_own_end_erases_what_it_still_waits_for(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    async with world.db.connection() as conn:
        await journal.append(conn, world.worker, [suspended(world, run, parks=False)])
        last = world.last_write(run, NodeCompleted("ask"))
        assert await journal.append(conn, world.worker, [last]) == {run: Saved(7, False)}
    assert await waiting(world, run) == []


async def test_tags_can_be_claimed_and_stops_asked_around_a_wait(world: World) -> None:
    run = await world.start_one(nodes=["ask"])
    await world.tag(run, "sender")
    await park(world, run, after=3)
    other = await world.start_one()
    await world.tag(other, "sender")
    await world.ask(other, "sender")
    assert [each.run for each in await world.carry_out()] == [run]
    with pytest.raises(RunEnded):
        await world.tag(run, "more")


# --- reading ----------------------------------------------------------------------------------------------


async def test_the_inbox_is_read_page_by_page_the_longest_waiting_first(world: World) -> None:
    first = await parked(world, 3)
    second = await parked(world, 3)
    await parked(world, kinds=("webhook",))
    async with world.db.connection() as conn:
        other = await projects.ensure(conn, "other", "Other")
        seen: list[waits.Wait] = []
        while page := await waits.forms(
            conn, [other, world.project], 2, (seen[-1].registered_at, seen[-1].token) if seen else None
        ):
            seen += page
        assert await waits.forms(conn, [other], 2) == []
    assert {each.run for each in seen[:3]} == set(first)
    assert {each.run for each in seen[3:]} == set(second)
    assert len(seen) == 6


async def test_the_secret_of_a_database_is_its_own_and_stays(world: World, empty_database_url: str) -> None:
    """A database with a history of its own: a copy of a migrated one has the same secret, as a restored dump must."""
    async with world.db.connection() as conn:
        key = await waits.secret(conn)
        assert await waits.secret(conn) == key
    assert len(key) >= 32
    other = await Database.open(empty_database_url, pool_size=1)
    async with other.connection() as conn:
        await migrate(conn)
        assert await waits.secret(conn) != key
    await other.close()
