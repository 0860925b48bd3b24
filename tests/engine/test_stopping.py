"""Whole runs that are stopped: where exactly the stop meets them, who it reaches, and what the record says after it."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.engine.cast import another, check_no_deadlock, end, fetch, tell, until
from tests.engine.network import Network
from tests.engine.scene import KEY, Scene
from weft.engine.worker import Worker
from weft.store import projects
from weft.store.runs import journal, scopes
from weft.store.runs.scopes import Ending

ENDINGS = ("execution_completed", "execution_failed", "execution_cancelled")


@pytest.fixture
async def network(scene: Scene) -> AsyncIterator[Network]:
    async with Network.open(scene.url) as network:
        yield network


async def running(scene: Scene, worker: Worker, text: str, node: str = "a", **options: object) -> UUID:
    """A run whose node is in its body."""
    run = await worker.start(scene.project, scene.program(text), **options)
    while node not in {key[0] for key in worker.executions[run].bodies}:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0)
    return run


async def gone(worker: Worker, run: UUID) -> None:
    """Returns when the worker drives the run no more."""
    while run in worker.executions:
        await asyncio.sleep(0.005)


async def lines(file: Path, count: int) -> list[str]:
    """What a body has written, once it is that many lines."""
    while not file.exists() or (text := file.read_text()).count("\n") < count:
        await asyncio.sleep(0.005)
    return text.splitlines()


# --- against the finish -----------------------------------------------------------------------------------


async def test_race_21_and_22_and_fault_b01_a_stop_against_the_finish(
    scene: Scene, rounds: int, ran: Callable[[str], None]
) -> None:
    """At random offsets, told and untold: one end, the first; nothing after it, and no body of an ended run goes on."""
    seen: Counter[str] = Counter()
    gate = asyncio.Semaphore(20)
    choose = random.Random(1)

    async def round_(worker: Worker) -> None:
        async with gate:
            text = f"a = Sleep {{ seconds: {choose.random() * 0.02:.4f} }}\nb = Step {{ value: a.value }}"
            run = await worker.start(scene.project, scene.program(text))
            await asyncio.sleep(choose.random() * 0.06)
            ended = await end(scene, run)
            if choose.random() < 0.5:
                await tell(scene, ended)
            said = await worker.ended(run, scene.project)
            kinds = await scene.kinds(run)
            assert [kind for kind in kinds if kind in ENDINGS] == [kinds[-1]]
            assert kinds[-1] == ("execution_cancelled" if ended else "execution_completed")
            assert said.status == kinds[-1].removeprefix("execution_")
            seen[said.status] += 1
            await gone(worker, run)
            assert await scene.kinds(run) == kinds

    async with scene.worker() as worker:
        await asyncio.gather(*[round_(worker) for _ in range(2 * rounds)])
    assert seen.total() == 2 * rounds
    assert len(seen) == 2, f"only {seen}: the offsets do not reach both sides"
    await check_no_deadlock(scene)
    ran(f"{2 * rounds} rounds, {dict(seen)}")


async def test_fault_b06_a_run_that_stops_itself_while_a_person_stops_it(
    scene: Scene, rounds: int, ran: Callable[[str], None]
) -> None:
    by: Counter[str] = Counter()
    gate = asyncio.Semaphore(4)
    choose = random.Random(2)
    text = 'a = TagRun { tags: ["all"] }\nb = StopTagged { _should_flow: a.done  tags: ["all"]  includeSelf: true }'
    count = max(rounds // 4, 1)

    async def round_(worker: Worker, number: int) -> None:
        async with gate:
            program = scene.program(text.replace("all", f"own{number}"))
            run = await worker.start(scene.project, program)
            # Half of them soon after the run's own stop is asked, the others at any time before.
            if number % 2:
                await until(scene, "SELECT EXISTS (SELECT FROM stops WHERE run = $1)", run)
            await asyncio.sleep(choose.random() * (0.02 if number % 2 else 0.05))
            await tell(scene, await end(scene, run))
            assert (await worker.ended(run, scene.project)).status == "cancelled"
            events = await scene.events(run)
            assert [each["kind"] for each in events if each["kind"] in ENDINGS] == ["execution_cancelled"]
            status = await scene.status(run)
            assert events[-1]["reason"] == status.reason
            by[events[-1]["cause"]["kind"]] += 1
            await gone(worker, run)

    async with scene.worker() as worker:
        await asyncio.gather(*[round_(worker, number) for number in range(count)])
    assert by.total() == count
    ran(f"{count} rounds, {dict(by)}")


async def test_fault_b66_a_stop_while_the_last_event_is_being_written(scene: Scene, network: Network) -> None:
    """The end is committed, and its answer is still on the way when the stop comes: the run has completed."""
    async with another(scene, network.url) as worker:
        run = await running(scene, worker, "a = Sleep { seconds: 0.1 }")
        network.slow("weft writer")
        await until(scene, "SELECT ended_at IS NOT NULL FROM runs WHERE id = $1", run)
        network.hold("weft writer")
        assert await end(scene, run) == []
        worker._stop_here(run)
        network.let_go("weft writer")
        assert (await worker.ended(run, scene.project)).status == "completed"
        before = os.times()
        await asyncio.sleep(1)
        after = os.times()
    assert (await scene.kinds(run))[-1] == "execution_completed"
    assert (after.user + after.system) - (before.user + before.system) < 0.3


# --- before there is a body -------------------------------------------------------------------------------


async def test_fault_b07_a_run_that_is_stopped_before_its_first_claim_is_never_claimed(
    scene: Scene, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    [run, other] = await scene.queue(f'a = Traces {{ file: "{trace}" }}', 2)
    await end(scene, run)
    async with scene.worker(claims=True):
        await scene.until_ended(other)
    assert trace.read_text().split() == [str(other)]
    assert await scene.kinds(run) == ["execution_started", "execution_cancelled"]
    assert (await scene.status(run)).lease == 0


async def test_race_28_a_run_that_is_stopped_as_it_is_claimed_starts_no_body(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    """The claim is committed, and the worker has not heard so when the stop comes."""
    trace = tmp_path / "trace"
    async with another(scene, network.url, claims=True) as worker:
        network.slow("weft")
        [run] = await scene.queue(f'a = Traces {{ file: "{trace}" }}')
        await until(scene, "SELECT worker FROM runs WHERE id = $1", run)
        network.hold("weft")
        await end(scene, run)
        network.let_go("weft")
        [next_one] = await scene.queue(f'a = Traces {{ file: "{trace}" }}')
        await scene.until_ended(next_one)
        assert run not in worker.executions
    assert trace.read_text().split() == [str(next_one)]
    assert await scene.kinds(run) == ["execution_started", "execution_cancelled"]


async def test_fault_b07_a_node_that_is_stopped_before_its_start_is_saved_never_runs(
    scene: Scene, tmp_path: Path
) -> None:
    """The worker waits for the run's lock, to save the start, while whoever holds it ends the run."""
    trace, go = tmp_path / "trace", tmp_path / "go"
    text = f'a = Waits {{ go: "{go}" }}\nb = Traces {{ _should_flow: a.done  file: "{trace}" }}'
    holder = await scene.database.dedicated("holder")
    async with scene.worker() as worker:
        run = await running(scene, worker, text)
        async with holder.transaction():
            await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", run)
            go.touch()
            await until(
                scene,
                "SELECT EXISTS (SELECT FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock')",
            )
            await scopes.end_trees(holder, scene.project, [run], Ending("cancelled", "Cancelled by user", {}))
        assert (await worker.ended(run, scene.project)).status == "cancelled"
        await gone(worker, run)
    await holder.close()
    assert not trace.exists()
    assert await scene.kinds(run, "b") == []
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_race_29_a_stop_that_is_told_before_the_run_is_known_here_is_not_lost(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    """The start is committed and its answer on the way when the stop is told: no body begins."""
    trace = tmp_path / "trace"
    async with another(scene, network.url) as worker:
        program = scene.program(f'a = Traces {{ file: "{trace}" }}')
        await worker.starter.store_program(scene.project, program)
        network.slow("weft")
        starting = asyncio.ensure_future(worker.start(scene.project, program))
        run = await until(scene, "SELECT id FROM runs")
        network.hold("weft")
        ended = await end(scene, run)
        for each in ended:
            worker._stop_here(each.run)
        network.let_go("weft")
        assert await starting == run
        assert (await worker.ended(run, scene.project)).status == "cancelled"
        assert worker.executions == {}
    assert not trace.exists()
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


# --- on its way to the body -------------------------------------------------------------------------------


async def test_race_27_a_stop_that_nobody_tells_reaches_the_body_within_a_second_or_so(
    scene: Scene, tmp_path: Path
) -> None:
    """Ownership stays where it was; the body finds out all the same."""
    told = tmp_path / "told"
    async with scene.worker() as worker:
        run = await running(scene, worker, f'a = Waits {{ told: "{told}" }}')
        before = await scene.status(run)
        began = time.monotonic()
        await end(scene, run)
        after = await scene.status(run)
        assert (after.status, after.worker, after.lease) == ("cancelled", before.worker, before.lease)
        await lines(told, 1)
    assert time.monotonic() - began < 3


async def test_race_27_the_next_write_of_a_stopped_run_is_refused_and_ends_its_body(
    scene: Scene, tmp_path: Path
) -> None:
    go, told = tmp_path / "go", tmp_path / "told"
    text = f'a = Waits {{ go: "{go}" }}\nb = Step {{ _should_flow: a.done }}\nc = Waits {{ told: "{told}" }}'
    async with scene.worker() as worker:
        run = await running(scene, worker, text, node="c")
        journal_then = await scene.events(run)
        async with scene.database.transaction() as connection:
            await scopes.end_trees(connection, scene.project, [run], Ending("cancelled", "Cancelled by user", {}))
            # The notice that the owner would find is taken away: only its own write can tell it.
            await connection.execute("DELETE FROM notices")
        go.touch()
        await gone(worker, run)
        await lines(told, 1)
    events = await scene.events(run)
    assert events[: len(journal_then)] == journal_then
    assert [each["kind"] for each in events[len(journal_then) :]] == ["node_cancelled"] * 2 + ["execution_cancelled"]


async def test_race_20_a_body_that_does_not_know_yet_that_it_was_stopped_cannot_tag(
    scene: Scene, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with scene.worker() as worker:
        run = await running(scene, worker, f'a = AppearsThenTags {{ go: "{go}" }}')
        async with scene.database.transaction() as connection:
            await scopes.end_trees(connection, scene.project, [run], Ending("cancelled", "Cancelled by user", {}))
            await connection.execute("DELETE FROM notices")
        go.touch()
        await gone(worker, run)
        while "refused" not in go.read_text():
            await asyncio.sleep(0.01)
    assert await fetch(scene, "SELECT FROM tags") == []
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_fault_b03_a_body_that_runs_again_after_a_crash_is_stopped_like_any_other(
    scene: Scene, tmp_path: Path
) -> None:
    begun, told = tmp_path / "begun", tmp_path / "told"
    [run] = await scene.queue(f'a = Waits {{ begun: "{begun}"  told: "{told}" }}')
    async with scene.process() as first:
        await scene.until_started(run, "a")
        await lines(begun, 1)
        await first.kill()
    async with scene.process():
        await lines(begun, 2)
        await tell(scene, await end(scene, run))
        await lines(told, 1)
    assert told.read_text().split()[0] == str(run)
    assert (await scene.kinds(run, "a"))[-1] == "node_cancelled"


# --- what a body makes of it ------------------------------------------------------------------------------


async def test_race_30_except_exception_does_not_catch_a_stop(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await running(scene, worker, "a = CatchesExceptions")
        bodies = list(worker.executions[run].bodies.values())
        await tell(scene, await end(scene, run))
        await asyncio.wait(bodies)
    assert await scene.aftermath(run) == []
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_race_30_and_fault_b13_finally_may_await_and_is_waited_for(scene: Scene, tmp_path: Path) -> None:
    """Also where the process leaves at once: a body that was stopped has the grace time to clean up."""
    file = tmp_path / "file"
    async with scene.worker() as worker:
        run = await running(scene, worker, f'a = AwaitsInFinally {{ file: "{file}" }}')
        await tell(scene, await end(scene, run))
        await gone(worker, run)
    assert file.read_text().splitlines() == ["begun", "cleaned up"]


async def test_race_31_a_busy_loop_does_not_keep_its_run_alive(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "file"
    [run] = await scene.queue(
        f'a = BusyLoop {{ file: "{file}"  seconds: 1 }}\nb = Traces {{ _should_flow: a.done  file: "{file}" }}'
    )
    async with scene.process() as process:
        while not file.exists():
            await asyncio.sleep(0.01)
        await tell(scene, await end(scene, run))
        assert "over" not in file.read_text(), "the run has ended before its body"
        while "over" not in file.read_text():
            await asyncio.sleep(0.01)
        assert await process.drain() == 0
    assert file.read_text().splitlines() == ["begun", "over"]
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_fault_b05_every_branch_of_a_stopped_run_has_its_end_at_the_same_commit(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await running(scene, worker, "done = Step { value: 1 }\na = Sleep { value: 1 }\nb = Sleep { value: 2 }")
        await scene.until(run, lambda events: any(each["kind"] == "node_completed" for each in events))
        await tell(scene, await end(scene, run))
    async with scene.database.connection() as connection:
        last = (await journal.read(connection, scene.project, run))[-1]
    assert last.count == 3
    assert (await scene.kinds(run, "done"))[-1] == "node_completed"
    assert {(await scene.kinds(run, node))[-1] for node in "ab"} == {"node_cancelled"}


async def test_race_32_the_reason_is_the_cause_on_every_path(scene: Scene) -> None:
    """A run that another worker drives, one that nobody does, and one that a person stops."""
    text = "a = Sleep { value: 1 }"
    async with scene.worker() as worker, scene.worker() as other:
        driven = await running(scene, other, text, tags=["t"])
        [queued] = await scene.queue(text, tagged=["t"])
        mine = await running(scene, worker, text)
        asker, _ = await scene.run(worker, 'stop = StopTagged { tags: ["t"] }')
        for run in (driven, queued):
            status = await scene.until_ended(run)
            assert status.reason == f"Stopped by execution {asker} (tag t)"
            assert (await scene.events(run))[-1]["reason"] == status.reason
        await tell(scene, await end(scene, mine))
        assert (await worker.ended(mine, scene.project)).status == "cancelled"
    assert (await scene.events(mine))[-2:] == [
        {"kind": "node_cancelled", "node": "a", "reason": "Cancelled by user", "cause": {"kind": "user"}},
        {"kind": "execution_cancelled", "reason": "Cancelled by user", "cause": {"kind": "user"}},
    ]


# --- whom it reaches --------------------------------------------------------------------------------------


async def test_fault_b18_a_tag_is_matched_whole_and_within_its_project(scene: Scene) -> None:
    text = "a = Sleep { value: 1 }"
    async with scene.worker() as worker:
        [reached] = await scene.queue(text, tagged=["user_7"])
        [longer] = await scene.queue(text, tagged=["user_77"])
        async with scene.database.connection() as connection:
            elsewhere = await projects.ensure(connection, "elsewhere", "Elsewhere")
        there = Scene(scene.url, scene.database, elsewhere, scene.registry)
        [other] = await there.queue(text, tagged=["user_7"])
        await scene.run(worker, 'stop = StopTagged { tags: ["user_7"] }')
        assert (await scene.until_ended(reached)).status == "cancelled"
        assert (await scene.status(longer)).status == "queued"
        assert (await there.status(other)).status == "queued"
    assert KEY != "elsewhere"


async def carry_out_later(scene: Scene, interval: str) -> None:
    """From now on a stop is due only after this time, whoever looks."""
    async with scene.database.connection() as connection:
        await connection.execute(
            f"""CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN NEW.due = NEW.due + interval '{interval}'; RETURN NEW; END $$;
                CREATE TRIGGER later BEFORE INSERT ON stops FOR EACH ROW EXECUTE FUNCTION later()"""
        )


async def test_race_03_and_fault_b19_a_run_that_tags_after_the_ask_is_spared(scene: Scene) -> None:
    await carry_out_later(scene, "0.5 s")
    async with scene.worker() as worker:
        old = await running(scene, worker, "a = Sleep { value: 1 }", tags=["t"])
        _, end_of_asker = await scene.run(worker, 'stop = StopTagged { tags: ["t"] }')
        assert end_of_asker.status == "completed"
        new = await running(scene, worker, "a = Sleep { value: 1 }", tags=["t"])
        assert (await scene.until_ended(old)).status == "cancelled"
        await until(scene, "SELECT state = 'done' FROM stops")
        assert (await scene.status(new)).status == "running"
        await tell(scene, await end(scene, new))


@pytest.mark.parametrize("cut_off", [False, True])
async def test_race_14_include_never_returns_to_a_run_that_carries_the_tag(
    scene: Scene, network: Network, tmp_path: Path, cut_off: bool
) -> None:
    """And does to one that does not; also where the worker neither tells anybody nor hears anything."""
    trace, go = tmp_path / "trace", tmp_path / "go"
    go.touch()
    inside = f'a = TagsAtOnce {{ tag: "t"  go: "{go}"  include: true }}\n'
    after = f'b = Traces {{ _should_flow: a.done  file: "{trace}" }}'
    async with another(scene, network.url) as worker:
        if cut_off:
            network.refuse("weft notifier", "weft listener")
        [elder] = await scene.queue("a = Sleep { value: 1 }", tagged=["t"])
        run = await worker.start(scene.project, scene.program(inside + after))
        assert (await worker.ended(run, scene.project)).status == "cancelled"
        assert (await scene.until_ended(elder)).status == "cancelled"
        assert (await scene.events(run))[-1]["cause"] == {"kind": "execution", "by": str(run), "tag": "t"}
        await gone(worker, run)
        outside = f'a = StopTagged {{ tags: ["t"]  includeSelf: true }}\n{after}'
        other = await worker.start(scene.project, scene.program(outside))
        assert (await worker.ended(other, scene.project)).status == "completed"
    assert trace.read_text().split() == [str(other)]
    assert await scene.kinds(run, "b") == []


async def test_race_15_an_include_that_is_never_carried_out_waits_no_longer_than_its_run_lives(
    scene: Scene, tmp_path: Path
) -> None:
    """Its own stop stays queued; a person ends the run, and tells nobody."""
    await carry_out_later(scene, "1 hour")
    go = tmp_path / "go"
    go.touch()
    async with scene.worker() as worker:
        run = await running(scene, worker, f'a = TagsAtOnce {{ tag: "t"  go: "{go}"  include: true }}')
        bodies = list(worker.executions[run].bodies.values())
        await until(scene, "SELECT count(*) = 1 FROM stops WHERE state = 'queued'")
        async with scene.database.transaction() as connection:
            await scopes.end_trees(connection, scene.project, [run], Ending("cancelled", "Cancelled by user", {}))
            await connection.execute("DELETE FROM notices")
        await asyncio.wait(bodies)
        assert (await worker.ended(run, scene.project)).status == "cancelled"
    assert (await scene.events(run))[-1]["reason"] == "Cancelled by user"


# --- closures and values ----------------------------------------------------------------------------------


async def test_race_61_null_false_and_nothing_are_three_things(scene: Scene) -> None:
    text = """
    nothing = NeverEmits
    onNothing = Pass { value: nothing.value }
    onNull = Pass { value: null }
    afterNull = Debug { data: onNull.value }
    isFalse = Pass { value: false }
    gated = Step { _should_flow: isFalse.value }
    gatedByNothing = Step { _should_flow: nothing.value }
    """
    async with scene.worker() as worker:
        run, ended = await scene.run(worker, text)
    assert ended.status == "completed", ended
    emitted = {each["node"]: each["value"] for each in await scene.events(run) if each["kind"] == "port_emitted"}
    assert emitted == {"onNull": None, "isFalse": False}
    assert (await scene.kinds(run, "afterNull"))[-1] == "node_completed"
    skips = {each["node"]: each["reason"] for each in await scene.events(run) if each["kind"] == "node_skipped"}
    assert set(skips) == {"onNothing", "gated", "gatedByNothing"}
    assert skips["gated"] != skips["gatedByNothing"], "a false gate and a closed one are told apart"
