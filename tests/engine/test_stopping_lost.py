"""Tags and stops when a process dies or the database goes away: at the latest a second or so after it is back, a stop
that was stored has its effect, and nothing has happened twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from tests.engine.cast import another, call_for_claims, end, fetch, tell, until, until_carried_out, value
from tests.engine.network import Network
from tests.engine.scene import Scene
from tests.engine.test_stopping import carry_out_later, gone, running
from tests.store.invariants import check_invariants
from weft.errors import StoreUnreachable
from weft.store.embedded import embedded_server, postmaster
from weft.store.migrate import migrate

BOUND = 3.0
"""Seconds: the look that is due once a second, and what a loaded machine adds."""


@pytest.fixture
async def network(scene: Scene) -> AsyncIterator[Network]:
    async with Network.open(scene.url) as network:
        yield network


# --- a process dies ---------------------------------------------------------------------------------------


async def test_race_09_a_run_that_tags_again_after_a_crash_keeps_its_place(scene: Scene, tmp_path: Path) -> None:
    """The crash comes after the tag and before the stop; meanwhile a newer run has tagged."""
    go = tmp_path / "go"
    [old] = await scene.queue(f'a = TagsAtOnce {{ tag: "t"  go: "{go}" }}\nhold = Sleep {{ _should_flow: a.done }}')
    async with scene.process() as first:
        await until(scene, "SELECT EXISTS (SELECT FROM tags WHERE run = $1)", old)
        await first.kill()
    async with scene.worker() as worker:
        new = await running(scene, worker, 'a = TagRun { tags: ["t"] }\nb = Sleep { _should_flow: a.done }', node="b")
        go.touch()
        async with scene.process():
            await scene.until_started(old, "hold")
            await until_carried_out(scene, "t")
            assert (await scene.status(new)).status == "running", "the elder has not stopped the newer one"
            stop = 'a = TagsAtOnce { tag: "t"  go: "/" }\nhold = Sleep { _should_flow: a.done }'
            newest = await worker.start(scene.project, scene.program(stop))
            for run in (old, new):
                status = await scene.until_ended(run)
                assert status.reason == f"Stopped by execution {newest} (tag t)"
        assert (await scene.status(newest)).status == "running"
        await tell(scene, await end(scene, newest))
    assert (await scene.kinds(old)).count("execution_tagged") == 1


async def test_race_10_a_stop_that_is_asked_again_after_a_crash_is_the_first_one(scene: Scene, tmp_path: Path) -> None:
    """The asker carries no tag, so that a second stop would reach further than the first."""
    go = tmp_path / "go"
    text = "a = Sleep { value: 1 }"
    async with scene.worker() as worker:
        elder = await running(scene, worker, text, tags=["t"])
        [asker] = await scene.queue(f'a = StopsAtOnce {{ tag: "t"  go: "{go}" }}')
        async with scene.process() as first:
            assert (await scene.until_ended(elder)).status == "cancelled"
            await first.kill()
        newer = await running(scene, worker, text, tags=["t"])
        go.touch()
        async with scene.process():
            assert (await scene.until_ended(asker)).status == "completed"
            await until_carried_out(scene, "t")
        assert "node_resumed" in await scene.kinds(asker)
        assert await value(scene, "SELECT count(*) FROM stops") == 1
        assert (await scene.status(newer)).status == "running"
        await tell(scene, await end(scene, newer))


async def test_race_60_a_process_that_freezes_in_the_middle_of_a_stop_holds_nobody_up(scene: Scene) -> None:
    """It holds the victim's locks; the server takes them from it, another worker carries the stop out, and when it
    wakes it finds nothing left to do."""
    holder = await scene.database.dedicated("holder")
    [victim] = await scene.queue("a = Step { value: 1 }", tagged=["t"])
    await holder.execute("BEGIN")
    await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", victim)
    async with scene.process() as process:
        [asker] = await scene.queue('a = StopTagged { tags: ["t"] }')
        await call_for_claims(scene)
        await until(
            scene,
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')",
        )
        process.freeze()
        await holder.execute("COMMIT")
        await holder.close()
        async with scene.worker():
            assert (await scene.until_ended(victim)).status == "cancelled"
            await until_carried_out(scene, "t")
            process.thaw()
            assert (await scene.until_ended(asker)).status == "completed"
            assert await process.drain() == 0
    assert await scene.kinds(victim) == ["execution_started", "execution_tagged", "execution_cancelled"]


async def test_fault_b57_a_body_that_blocks_its_process_for_three_leases_is_not_run_twice(
    scene: Scene, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    [run] = await scene.queue(f'a = BlocksNowAndThen {{ file: "{file}"  seconds: 0.7  times: 5 }}')
    async with scene.process(LEASE="1.6", RENEW="0.2"):
        await scene.until_started(run, "a")
        async with scene.process(LEASE="1.6", RENEW="0.2"):
            assert (await scene.until_ended(run)).status == "completed"
    assert file.read_text() == "body\n"
    assert (await scene.status(run)).lease == 1


# --- a commit whose answer is lost ------------------------------------------------------------------------


async def test_race_54_a_tag_that_is_committed_and_not_heard_of_is_set_once(scene: Scene, network: Network) -> None:
    async with another(scene, network.url) as worker:
        program = scene.program('a = TagRun { tags: ["t"] }\nb = StopTagged { _should_flow: a.done  tags: ["t"] }')
        run = await worker.start(scene.project, program)
        network.slow("weft", 0.1)
        for table in ("tags", "stops"):
            await until(scene, f"SELECT EXISTS (SELECT FROM {table} WHERE run = $1)", run)
            network.cut("weft")
        network.let_go("weft")
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert (await scene.kinds(run)).count("execution_tagged") == 1
    assert await value(scene, "SELECT count(*) FROM stops") == 1


async def test_a_claim_that_is_committed_and_not_heard_of_strands_no_run(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    async with another(scene, network.url, claims=True):
        network.slow("weft")
        [run] = await scene.queue(f'a = Traces {{ file: "{trace}" }}')
        await until(scene, "SELECT worker FROM runs WHERE id = $1", run)
        network.cut("weft")
        network.let_go("weft")
        assert (await scene.until_ended(run)).status == "completed"
    assert trace.read_text().split() == [str(run)]
    assert (await scene.status(run)).lease == 2


async def test_a_start_that_is_committed_and_not_heard_of_strands_no_run(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    """Whoever asked for it is told that nobody knows; the run that was begun goes on all the same."""
    trace = tmp_path / "trace"
    async with another(scene, network.url, claims=True) as worker:
        program = scene.program(f'a = Traces {{ file: "{trace}" }}')
        await worker.starter.store_program(scene.project, program)
        network.hold_at("weft", "INSERT INTO runs")
        starting = asyncio.ensure_future(worker.start(scene.project, program))
        run = await until(scene, "SELECT id FROM runs")
        network.cut("weft")
        network.let_go("weft")
        with pytest.raises(StoreUnreachable):
            await starting
        assert (await scene.until_ended(run)).status == "completed"
    assert trace.read_text().split() == [str(run)]


async def test_race_27_a_stop_that_was_read_and_not_heard_of_is_read_again(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    async with another(scene, network.url) as worker:
        run = await running(scene, worker, f'a = Waits {{ told: "{told}" }}')
        network.hold("weft listener")
        await end(scene, run)
        await network.hold_at("weft", "FROM notices WHERE worker").wait()
        await asyncio.sleep(0.1)
        assert not told.exists()
        began = time.monotonic()
        network.cut("weft")
        network.let_go("weft")
        await soon_stopped(scene, run, told, began)
        await until(scene, "SELECT NOT EXISTS (SELECT FROM notices)")
        network.let_go("weft listener")


async def test_events_that_are_written_alone_and_not_heard_of_are_written_once(
    scene: Scene, network: Network, tmp_path: Path
) -> None:
    """The run is locked when the group commits, so it is written by itself, and the answer to that is lost."""
    go = tmp_path / "go"
    holder = await scene.database.dedicated("holder")
    async with another(scene, network.url) as worker:
        run = await running(
            scene, worker, f'a = Waits {{ go: "{go}" }}\nb = Sleep {{ _should_flow: a.done  seconds: 1 }}'
        )
        await holder.execute("BEGIN")
        await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", run)
        go.touch()
        await until(
            scene,
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')",
        )
        network.slow("weft")
        await holder.execute("COMMIT")
        await until(scene, "SELECT open_firings::text = '[[\"b\"]]' FROM runs WHERE id = $1", run)
        network.cut("weft")
        network.let_go("weft")
        assert (await worker.ended(run, scene.project)).status == "completed"
    await holder.close()
    kinds = await scene.kinds(run)
    assert kinds.count("node_completed") == kinds.count("port_emitted") == 2
    assert kinds.count("node_started") == 2


async def test_fault_b31_nothing_is_shown_before_it_is_stored(scene: Scene, network: Network, tmp_path: Path) -> None:
    """While the database cannot be reached a body has ended: nobody sees that; with the process dead, all that was seen
    is in the store."""
    go = tmp_path / "go"
    shown: list[str] = []
    async with another(scene, network.url, grace=scene.settings.grace / 20) as worker:
        worker.listeners.append(lambda _, events: shown.extend(each.kind for each in events))
        run = await running(scene, worker, f'a = Waits {{ go: "{go}" }}\nb = Sleep {{ _should_flow: a.done }}')
        names = ["weft", "weft writer", "weft listener", "weft notifier", "weft death lock"]
        network.refuse(*names)
        task = worker.executions[run].bodies[("a", ())]
        go.touch()
        await asyncio.wait([task])
        await asyncio.sleep(0.3)
        assert shown == await scene.kinds(run)
        assert shown == ["execution_started", "node_kicked", "node_started"]
        await end(scene, run)
        network.admit(*names)
    assert (await scene.kinds(run))[: len(shown)] == shown


# --- the database goes away -------------------------------------------------------------------------------


async def soon_stopped(scene: Scene, run: UUID, told: Path, began: float) -> None:
    """The body has met its stop within the bound."""
    while not (told.exists() and str(run) in told.read_text()):
        await asyncio.sleep(0.01)
    assert time.monotonic() - began < BOUND


@pytest.mark.parametrize("name", ["weft listener", "weft notifier"])
async def test_fault_b94_a_stop_takes_effect_soon_after_the_listening_backend_was_ended(
    scene: Scene, tmp_path: Path, name: str
) -> None:
    told = tmp_path / "told"
    async with scene.worker() as worker:
        run = await running(scene, worker, f'a = Waits {{ told: "{told}" }}', tags=["t"])
        ended = await fetch(
            scene,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = $1",
            name,
        )
        assert ended or name == "weft notifier", "nobody listened"
        began = time.monotonic()
        _, asked = await scene.run(worker, 'stop = StopTagged { tags: ["t"] }')
        assert asked.status == "completed"
        await soon_stopped(scene, run, told, began)


async def test_fault_b94_packets_that_are_dropped_for_a_while(scene: Scene, network: Network, tmp_path: Path) -> None:
    """A stop by somebody else, while no connection of the worker hears anything; then all of them break."""
    told = tmp_path / "told"
    names = ["weft", "weft writer", "weft listener", "weft notifier", "weft death lock"]
    async with another(scene, network.url) as worker:
        run = await running(scene, worker, f'a = Waits {{ told: "{told}" }}')
        for name in names:
            network.hold(name)
        await tell(scene, await end(scene, run))
        await asyncio.sleep(1.5)
        assert not told.exists()
        began = time.monotonic()
        network.cut()
        for name in names:
            network.let_go(name)
        await soon_stopped(scene, run, told, began)
        assert worker.executions == {}


async def test_fault_b94_a_server_that_is_killed_and_comes_back(server_folder: Path, tmp_path: Path) -> None:
    """The worker lives through it, does not spin meanwhile, obeys the stop after it, and starts new runs."""
    told = tmp_path / "told"
    async with embedded_server(server_folder) as url:
        connection = await asyncpg.connect(url)
        await migrate(connection)
        await connection.close()
        async with Scene.open(url) as scene, scene.worker() as worker:
            run = await running(scene, worker, f'a = Waits {{ told: "{told}" }}', tags=["t"])
            server = postmaster.read(server_folder / "data")
            assert server is not None
            before = os.times()
            os.kill(server.pid, signal.SIGKILL)
            again = await restarted(url)
            used = os.times()
            asker = await again.fetchval("SELECT weft.weft_now()")
            assert asker
            began = time.monotonic()
            other, asked = await scene.run(worker, 'stop = StopTagged { tags: ["t"] }')
            assert asked.status == "completed"
            await soon_stopped(scene, run, told, began)
            assert (await scene.status(run)).reason == f"Stopped by execution {other} (tag t)"
            await check_invariants(again)
            await again.close()
    spent = used.user + used.system - before.user - before.system
    assert spent < 0.5 * (used.elapsed - before.elapsed) + 0.5, f"{spent:.1f} s of processor"


async def test_fault_b94_a_start_while_the_database_is_away_fails_and_the_worker_lives(
    scene: Scene, network: Network
) -> None:
    async with another(scene, network.url) as worker:
        program = scene.program("a = Step { value: 1 }")
        await worker.starter.store_program(scene.project, program)
        network.refuse("weft")
        with pytest.raises(StoreUnreachable):
            await worker.start(scene.project, program)
        network.admit("weft")
        run = await worker.start(scene.project, program)
        assert (await worker.ended(run, scene.project)).status == "completed"


async def restarted(url: str) -> asyncpg.Connection:
    """A connection to the server that came up in the place of the one that was killed."""
    while True:
        try:
            return await asyncpg.connect(url)
        except (OSError, asyncpg.PostgresError):
            await asyncio.sleep(0.05)


async def test_fault_b63_connections_that_the_server_would_close_for_idleness(scene: Scene, tmp_path: Path) -> None:
    told = tmp_path / "told"
    name = await value(scene, "SELECT current_database()")
    async with scene.database.connection() as connection:
        await connection.execute(f"ALTER DATABASE {name} SET idle_session_timeout = '400ms'")
    async with Scene.open(scene.url) as own, own.worker() as worker:
        run = await running(own, worker, f'a = Waits {{ told: "{told}" }}')
        sessions = (
            "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name ~ '^weft (listener|death lock|writer)'"
        )
        before = await value(scene, sessions)
        await asyncio.sleep(1.2)
        assert await value(scene, sessions) == before
        began = time.monotonic()
        await tell(own, await end(own, run))
        await soon_stopped(own, run, told, began)


async def test_a_stop_whose_carrying_out_is_cut_off_is_taken_up_again_at_once(scene: Scene, network: Network) -> None:
    holder = await scene.database.dedicated("holder")
    [victim] = await scene.queue("a = Step { value: 1 }", tagged=["t"])
    await holder.execute("BEGIN")
    await holder.execute("SELECT FROM runs WHERE id = $1 FOR UPDATE", victim)
    async with another(scene, network.url) as worker:
        await worker.start(scene.project, scene.program('a = StopTagged { tags: ["t"] }'))
        await until(
            scene,
            "SELECT EXISTS (SELECT FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock')",
        )
        began = time.monotonic()
        network.cut("weft")
        await holder.execute("COMMIT")
        await holder.close()
        assert (await scene.until_ended(victim)).status == "cancelled"
        assert time.monotonic() - began < BOUND
        await until_carried_out(scene, "t")


async def test_fault_b61_a_pool_of_one_while_a_stop_is_waited_for(scene: Scene) -> None:
    """A run that waits for its own end holds no connection, so the stop that ends it can be carried out."""
    await carry_out_later(scene, "0.2 s")
    narrow = await type(scene.database).open(scene.url, pool_size=1)
    own = Scene(scene.url, narrow, scene.project, scene.registry)
    text = 'a = TagRun { tags: ["t"] }\nb = StopTagged { _should_flow: a.done  tags: ["t"]  includeSelf: true }'
    try:
        async with own.worker() as worker:
            runs = await asyncio.gather(*[worker.start(own.project, own.program(text)) for _ in range(10)])
            for run in runs:
                assert (await worker.ended(run, own.project)).status == "cancelled"
                await gone(worker, run)
    finally:
        await narrow.close()


async def test_fault_b94_a_stop_that_is_due_where_nobody_works_keeps_no_other_project_busy(
    scene: Scene, network: Network
) -> None:
    """A worker looks after the stops of its own projects, and rests beside one that it cannot carry out."""
    await carry_out_later(scene, "0.3 s")
    async with Scene.open(scene.url, "left-alone") as other, other.worker() as worker:
        _, asked = await other.run(worker, 'stop = StopTagged { tags: ["t"] }')
        assert asked.status == "completed"
    await until(scene, "SELECT bool_and(state = 'queued' AND due < weft_now()) FROM stops")
    async with another(scene, network.url):
        before = network.statements()
        await asyncio.sleep(1)
        assert network.statements() - before < 60
