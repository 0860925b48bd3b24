"""Workers that are killed, frozen or cut off from the database: nothing is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from tests.engine.scene import Scene
from weft.store.runs import workers


async def take_over(scene: Scene, run: UUID) -> None:
    async with scene.process():
        await scene.until_ended(run)


async def test_race_51_and_52_what_was_saved_is_not_done_again(scene: Scene, tmp_path: Path) -> None:
    trace, go = tmp_path / "trace", tmp_path / "go"
    [run] = await scene.queue(
        f'a = Once {{ file: "{trace}"  go: "{go}" }}\nb = Debug {{ data: a.first }}\nc = Step {{ value: a.second }}'
    )
    async with scene.process() as first:
        await scene.until(run, lambda events: sum(each["kind"] == "run_output" for each in events) == 2)
        await first.kill()
    go.touch()
    await take_over(scene, run)
    assert (await scene.status(run)).status == "completed"
    # The body ran twice, its saved effect once.
    assert trace.read_text().splitlines() == ["asked", "body", "body"]
    assert await scene.kinds(run, "a") == [
        "node_kicked",
        "node_started",
        "log_line",
        "run_output",
        "port_emitted",
        "run_output",
        "node_resumed",
        "port_emitted",
        "node_completed",
    ]
    resumed = [each for each in await scene.events(run) if each["kind"] == "node_resumed"]
    assert "token" not in resumed[0]


async def test_a_body_that_goes_another_way_after_a_crash_fails(scene: Scene, tmp_path: Path) -> None:
    [run] = await scene.queue(f'a = Fickle {{ file: "{tmp_path / "seen"}" }}')
    async with scene.process() as first:
        await scene.until(run, lambda events: any(each["kind"] == "run_output" for each in events))
        await first.kill()
    await take_over(scene, run)
    status = await scene.status(run)
    assert status.status == "failed"
    assert "`other`" in str(status.error) and "`one`" in str(status.error)


async def test_a_body_that_must_not_run_twice_fails_after_a_crash(scene: Scene) -> None:
    [run] = await scene.queue("a = OnlyOnce\nb = Step { value: 1 }")
    async with scene.process() as first:
        await scene.until_started(run, "a")
        await first.kill()
    await take_over(scene, run)
    assert "may have partly happened" in str((await scene.status(run)).error)


async def test_race_53_and_fault_b87_a_frozen_worker_finds_every_write_refused(
    scene: Scene, tmp_path: Path
) -> None:
    trace, go = tmp_path / "trace", tmp_path / "go"
    text = (
        f'a = TagsThenWaits {{ go: "{go}" }}\n'
        f'b = Effect {{ _should_flow: a.done  file: "{trace}"  value: 1 }}'
    )
    [run] = await scene.queue(text)
    async with scene.process(LEASE="1.5", RENEW="0.3") as old, scene.worker() as watcher:
        await scene.until(run, lambda events: any(each["kind"] == "execution_tagged" for each in events))
        before = await scene.status(run)
        old.freeze()
        async with scene.process() as new:
            await scene.until(run, lambda events: any(each["kind"] == "node_resumed" for each in events))
            go.touch()
            await scene.until_ended(run)
            journal = await scene.events(run)
            old.thaw()
            # It tags, emits and completes now; each of it is refused.
            await asyncio.sleep(1)
            assert await scene.events(run) == journal
            after = await scene.status(run)
            assert (after.status, after.lease) == ("completed", before.lease + 1)
            assert await new.drain() == 0
        assert await old.drain() == 0
        assert watcher.executions == {}
    assert trace.read_text().splitlines() == [f"b {run}"]


async def test_fault_b58_sigterm_gives_the_runs_back_at_once(scene: Scene) -> None:
    [run] = await scene.queue("a = Sleep { value: 1  seconds: 60 }\nb = Step { value: a.value }")
    async with scene.process(GRACE="0.3") as first:
        await scene.until_started(run, "a")
        assert await first.drain() == 0
    status = await scene.status(run)
    assert (status.status, status.worker) == ("queued", None)
    assert (await scene.kinds(run))[-1] == "node_started"


async def test_sigterm_lets_a_body_end_and_saves_it(scene: Scene) -> None:
    [run] = await scene.queue("a = Sleep { value: 1  seconds: 0.5 }\nb = Step { value: a.value }")
    async with scene.process() as first:
        await scene.until_started(run, "a")
        assert await first.drain() == 0
    assert await scene.kinds(run, "a") == ["node_kicked", "node_started", "port_emitted", "node_completed"]
    assert await scene.kinds(run, "b") == []
    await take_over(scene, run)
    assert (await scene.status(run)).status == "completed"


async def cut_connections(scene: Scene) -> None:
    """End every session on the database."""
    knife = await scene.database.dedicated("knife")
    try:
        await knife.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        await knife.close()


async def test_race_55_after_a_lost_connection_a_run_goes_on_from_what_was_saved(
    scene: Scene, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    steps = "\n".join(
        f'n{at} = Effect {{ file: "{trace}"  seconds: 0.05  value: {f"n{at - 1}.value" if at else 0} }}'
        for at in range(20)
    )
    async with scene.worker() as worker:
        runs = [await worker.start(scene.project, scene.program(steps)) for _ in range(5)]
        ends = asyncio.gather(*[worker.ended(run, scene.project) for run in runs])
        for _ in range(4):
            await asyncio.sleep(0.2)
            await cut_connections(scene)
        assert {end.status for end in await ends} == {"completed"}
    # No body ran twice, since the process lived; no event is there twice.
    lines = trace.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 100
    for run in runs:
        kinds = await scene.kinds(run)
        assert kinds.count("node_completed") == 20
        assert kinds.count("execution_completed") == 1


async def test_race_54_a_tag_whose_commit_is_unknown_is_set_once(scene: Scene) -> None:
    tags = "\n".join(f't{at} = TagRun {{ tags: ["tag-{at}"] }}' for at in range(30))
    async with scene.worker() as worker:
        run = await worker.start(scene.project, scene.program(tags))
        end = asyncio.ensure_future(worker.ended(run, scene.project))
        for _ in range(10):
            await asyncio.sleep(0.1)
            await cut_connections(scene)
        assert (await end).status == "completed"
    tagged = [each["tags"][0] for each in await scene.events(run) if each["kind"] == "execution_tagged"]
    assert sorted(tagged) == sorted(f"tag-{at}" for at in range(30))


async def test_fault_b61_a_pool_of_one_connection_is_enough(database_url: str) -> None:
    from weft.store.pool import Database

    async with Scene.open(database_url) as scene:
        narrow = await Database.open(database_url, pool_size=1)
        try:
            scene.database = narrow
            text = 'a = TagRun { tags: ["one"] }\nb = StopTagged { _should_flow: a.done  tags: ["one"] }'
            async with scene.worker(claims=True) as worker:
                ends = await asyncio.gather(*[scene.run(worker, text) for _ in range(20)])
            assert {end.status for _, end in ends} <= {"completed", "cancelled"}
            assert ends[-1][1].status == "completed" or len(ends) > 1
        finally:
            await narrow.close()


async def test_fault_b31_every_event_that_was_shown_is_in_the_store(scene: Scene) -> None:
    async with scene.worker() as worker:
        shown: list[str] = []
        worker.listeners.append(lambda _run, events: shown.extend(each.kind for each in events))
        run, _ = await scene.run(worker, "a = Step { value: 1 }\nb = Step { value: a.value }")
        stored = await scene.kinds(run)
    assert shown == stored


async def test_race_58_bodies_that_wait_for_their_own_stop_hold_no_connection(scene: Scene) -> None:
    text = 'a = TagRun { tags: ["all"] }\nb = StopTagged { _should_flow: a.done  tags: ["all"]  includeSelf: true }'
    async with scene.worker() as worker:
        runs = [await worker.start(scene.project, scene.program(text)) for _ in range(30)]
        ends = [await worker.ended(run, scene.project) for run in runs]
    assert {end.status for end in ends} == {"cancelled"}


async def test_fault_b80_all_json_values_are_values_and_null_is_not_nothing(scene: Scene) -> None:
    code = "return {'l': [], 'n': None if False else None, 'z': 0, 's': '', 'f': False}"
    outputs = "l: List[Number], z: Number, s: String, f: Boolean, nothing: String"
    text = f'a = ExecPython -> ({outputs}, n: String) {{ code: "{code}" }}\n' + "\n".join(
        f"{port} = Debug {{ data: a.{port} }}" for port in ("l", "z", "s", "f", "nothing")
    )
    async with scene.worker() as worker:
        run, end = await scene.run(worker, text)
    assert end.status == "completed"
    emitted = {each["port"]: each["value"] for each in await scene.events(run) if each["kind"] == "port_emitted"}
    assert emitted == {"l": [], "z": 0, "s": "", "f": False}
    assert await scene.kinds(run, "nothing") == ["node_skipped"]
    assert "node_completed" in await scene.kinds(run, "l")


async def test_a_run_that_its_own_process_lost_is_taken_back_by_it(scene: Scene) -> None:
    """A process that was held up for longer than its lease: another one gave it up as dead, and nobody else claims."""
    async with scene.worker(lease=timedelta(seconds=2), renew=timedelta(seconds=0.3)) as worker:
        run = await worker.start(scene.project, scene.program("a = Sleep { value: 1  seconds: 1.5 }"))
        await scene.until_started(run, "a")
        async with scene.database.connection() as connection:
            # Its own look may be quicker.
            await workers.release_dead(connection, [worker.id])
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert (await scene.kinds(run, "a")).count("node_resumed") == 1
    assert (await scene.status(run)).lease == 2


async def test_a_run_that_kills_its_workers_fails_and_those_beside_it_do_not(scene: Scene) -> None:
    [beside] = await scene.queue("a = Sleep { value: 1  seconds: 4 }\nb = Step { value: a.value }")
    [deadly] = await scene.queue("calm = Step { value: 1 }\nboom = KillsItsProcess { _should_flow: calm.value }")
    died = 0
    while (await scene.status(deadly)).ended_at is None:
        async with scene.process() as process:
            ended = asyncio.create_task(scene.until_ended(deadly))
            gone = asyncio.create_task(process.process.wait())
            await asyncio.wait([ended, gone], return_when=asyncio.FIRST_COMPLETED)
            died += gone.done()
            ended.cancel()
            gone.cancel()
    status = await scene.status(deadly)
    assert (died, status.status) == (5, "failed")
    assert "5 workers died one after another" in str(status.error) and "boom" in str(status.error)
    async with scene.worker(claims=True):
        assert (await scene.until_ended(beside)).status == "completed"


FULL_DISK = """
CREATE TABLE disk (full_up boolean);
CREATE SEQUENCE refused;
INSERT INTO disk VALUES (true);
CREATE FUNCTION write_to_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT full_up FROM disk) THEN
        PERFORM nextval('refused');
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER full_disk BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION write_to_disk();
"""
"""What PostgreSQL says of a disk that is full, said by a trigger: nothing here fills a real one. A sequence counts, as
it outlives what is rolled back."""


async def test_a_full_disk_is_waited_out(scene: Scene) -> None:
    async with scene.worker() as worker:
        text = "a = Sleep { value: 1  seconds: 0.3 }\nb = Step { value: a.value }"
        run = await worker.start(scene.project, scene.program(text))
        await scene.until_started(run, "a")
        async with scene.database.connection() as connection:
            await connection.execute(FULL_DISK)
            while await connection.fetchval("SELECT last_value FROM refused") < 2:
                await asyncio.sleep(0.05)
            assert (await scene.status(run)).status == "running"
            await connection.execute("UPDATE disk SET full_up = false")
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert (await scene.kinds(run)).count("node_completed") == 2
