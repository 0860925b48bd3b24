"""Runs that wait: for a person, for a time, for a request, for another run, and between two tries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.engine.scene import Scene
from weft.errors import AlreadyAnswered, WaitGone
from weft.store.runs import endings


async def test_a_timer_parks_the_run_and_wakes_it(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(
            scene.project, scene.program("a = Naps { value: 7  seconds: 0.5 }\nb = Step { value: a.value }")
        )
        status = await scene.until_status(run, "waiting")
        assert (status.worker, worker.executions) == (None, {})
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert await scene.kinds(run, "a") == [
        "node_kicked",
        "node_started",
        "suspension_registered",
        "node_suspended",
        "suspension_resolved",
        "node_resumed",
        "port_emitted",
        "node_completed",
    ]


async def test_a_worker_that_claims_nothing_takes_its_own_run_back(scene: Scene) -> None:
    async with scene.worker() as worker:
        _, end = await scene.run(worker, "a = Naps { value: 7 }\nb = Naps { value: a.value }")
    assert end.status == "completed"


async def test_fault_b27_asking_until_the_answer_is_good(scene: Scene, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    async with scene.worker(claims=True) as worker:
        run = await worker.start(
            scene.project, scene.program(f'a = AsksAge {{ file: "{noted}" }}\nb = Debug {{ data: a.age }}')
        )
        for text in ("x", "-1", "30"):
            form = await scene.form(run)
            await scene.answer(form.token, {"age": text}, worker)
            while form.token in {each.token for each in await scene.waits(run)}:
                await asyncio.sleep(0.01)
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert noted.read_text().splitlines() == ["x", "-1", "30"]
    [age] = [each["value"] for each in await scene.events(run) if each["kind"] == "port_emitted"]
    assert age == 30


async def test_fault_b21_and_b32_park_here_answer_with_nobody_alive_resume_there(scene: Scene, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = (
        f'before = Effect {{ file: "{trace}"  value: 1 }}\n'
        f"a = FormOrTimer {{ _should_flow: before.value }}\n"
        f'after = Effect {{ file: "{trace}"  value: a.which }}'
    )
    [run] = await scene.queue(text)
    async with scene.process() as first:
        form = await scene.form(run)
        await scene.until_status(run, "waiting")
        await first.kill()
    await scene.answer(form.token, {"why": "because"})
    assert (await scene.status(run)).status == "queued"
    async with scene.process():
        assert (await scene.until_ended(run)).status == "completed"
    assert trace.read_text().splitlines() == [f"before {run}", f"after {run}"]


async def test_fault_b43_the_loser_of_a_race_is_gone_at_once(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program("a = FormOrTimer { seconds: 60 }"))
        form = await scene.form(run)
        await scene.answer(form.token, {"why": "now"}, worker)
        assert await scene.waits(run) == []
        assert (await worker.ended(run, scene.project)).status == "completed"


async def test_fault_b30_and_race_34_the_first_answer_counts(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program("a = FormOrTimer"))
        form = await scene.form(run)
        answers = await asyncio.gather(
            *[scene.answer(form.token, {"why": str(at)}, worker) for at in range(8)], return_exceptions=True
        )
        assert sum(each is None for each in answers) == 1
        assert all(isinstance(each, AlreadyAnswered) for each in answers if each is not None)
        assert (await worker.ended(run, scene.project)).status == "completed"
        with pytest.raises(AlreadyAnswered):
            await scene.answer(form.token, {"why": "late"}, worker)
    assert (await scene.kinds(run)).count("suspension_resolved") == 1


async def test_race_25_an_answer_after_the_stop_is_refused(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program("a = FormOrTimer"))
        form = await scene.form(run)
        await scene.until_status(run, "waiting")
        await endings.end_runs(scene.database, scene.project, [run], "Cancelled by user", {"kind": "user"})
        with pytest.raises(WaitGone):
            await scene.answer(form.token, {"why": "late"}, worker)
    assert (await scene.kinds(run))[-2:] == ["node_cancelled", "execution_cancelled"]


async def test_race_25_stop_against_answer_at_random_offsets(scene: Scene, rounds: int) -> None:
    """Either the answer was refused, or it came first and then the run was cancelled or had finished."""
    import random

    program = scene.program("a = FormOrTimer\nb = Sleep { value: a.which  seconds: 0.02 }")
    async with scene.worker(claims=True) as worker:
        for _ in range(min(rounds, 60)):
            run = await worker.start(scene.project, program)
            form = await scene.form(run)

            async def stop(run=run) -> None:
                await asyncio.sleep(random.uniform(0, 0.02))
                report = await endings.end_runs(scene.database, scene.project, [run], "x", {"kind": "user"})
                worker.tell_ended(report.ended)

            async def answer(token=form.token) -> None:
                await asyncio.sleep(random.uniform(0, 0.02))
                await scene.answer(token, {"why": "y"}, worker)

            _, answered = await asyncio.gather(stop(), answer(), return_exceptions=True)
            end = await worker.ended(run, scene.project)
            kinds = await scene.kinds(run)
            assert kinds[-1] == f"execution_{end.status}"
            assert ("suspension_resolved" in kinds) == (answered is None)
            if answered is not None:
                assert isinstance(answered, WaitGone)
                assert end.status == "cancelled"


async def test_fault_b35_and_race_50_a_run_waits_only_when_nothing_else_can_run(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program("a = FormOrTimer\nc = Sleep { value: 1  seconds: 0.5 }"))
        form = await scene.form(run)
        assert (await scene.status(run)).status == "running"
        await scene.until_status(run, "waiting")
        assert "node_completed" in await scene.kinds(run, "c")
        await scene.answer(form.token, {"why": "y"}, worker)
        assert (await worker.ended(run, scene.project)).status == "completed"


async def test_fault_b41_an_answer_before_the_run_has_parked_is_not_lost(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(
            scene.project,
            scene.program("a = FormOrTimer\nc = Sleep { value: 1  seconds: 0.3 }\nd = Step { value: a.which }"),
        )
        form = await scene.form(run)
        assert (await scene.status(run)).status == "running"
        # Nobody tells the worker: it finds the answer by its next write.
        async with scene.database.connection() as connection:
            from weft.store.runs import waits

            await waits.answer(connection, form.token, '{"why": "early"}', "a person")
        assert (await worker.ended(run, scene.project)).status == "completed"
    assert "node_completed" in await scene.kinds(run, "d")


async def test_a_failing_body_is_tried_again(scene: Scene, tmp_path: Path) -> None:
    async with scene.worker(claims=True) as worker:
        run, end = await scene.run(worker, f'a = Tries {{ file: "{tmp_path / "one"}" }}\nb = Step {{ value: a.tries }}')
        assert end.status == "completed"
        assert (await scene.kinds(run, "a")).count("node_retry_scheduled") == 2
        _, end = await scene.run(worker, f'a = Tries {{ file: "{tmp_path / "two"}"  good_at: 9 }}')
        assert (end.status, "try 3 failed" in str(end.error)) == ("failed", True)
        assert len((tmp_path / "two").read_text().splitlines()) == 3


async def test_a_run_waits_for_a_run_that_it_started(scene: Scene) -> None:
    scene.programs["child.weft"] = "n = Naps { value: 1  seconds: 0.3 }"
    scene.programs["bad.weft"] = "n = Fails"
    async with scene.worker() as worker:
        run, end = await scene.run(worker, 'a = StartsChild { program: "child.weft" }\nb = Debug { data: a.status }')
        assert end.status == "completed"
        emitted = [each["value"] for each in await scene.events(run) if each["kind"] == "port_emitted"]
        assert emitted == ["completed"]
        run, end = await scene.run(worker, 'a = StartsChild { program: "bad.weft" }')
        assert end.status == "completed"
        emitted = [each["value"] for each in await scene.events(run) if each["kind"] == "port_emitted"]
        assert emitted == ["failed"]


async def test_fault_b17_a_stop_of_the_root_ends_the_whole_tree(scene: Scene) -> None:
    scene.programs["grandchild.weft"] = "n = Naps { seconds: 60 }"
    scene.programs["child.weft"] = 'n = StartsChild { program: "grandchild.weft" }'
    async with scene.worker(claims=True) as worker:
        root = await worker.start(scene.project, scene.program('n = StartsChild { program: "child.weft" }'))
        await scene.until_status(root, "waiting")
        async with scene.database.connection() as connection:
            while len(rows := await connection.fetch("SELECT id FROM runs WHERE status = 'waiting'")) < 3:
                await asyncio.sleep(0.02)
        report = await endings.end_runs(scene.database, scene.project, [root], "Cancelled by user", {"kind": "user"})
        assert len(report.ended) == 3
        for row in rows:
            status = await scene.status(row["id"])
            assert status.status == "cancelled"
            assert row["id"] == root or str(root) in str(status.reason)


async def test_the_end_of_a_run_ends_the_runs_below_it(scene: Scene) -> None:
    scene.programs["child.weft"] = "n = Naps { seconds: 60 }"
    async with scene.worker(claims=True) as worker:
        run, end = await scene.run(worker, 'a = StartsChild { program: "child.weft"  wait: false }')
        assert end.status == "completed"
        async with scene.database.connection() as connection:
            rows = await connection.fetch("SELECT status FROM runs WHERE id <> $1", run)
    assert [row["status"] for row in rows] == ["cancelled"]


async def test_a_long_run_wakes_from_a_snapshot(scene: Scene) -> None:
    naps = "n0 = Naps { value: 0  seconds: 0.01 }\n" + "\n".join(
        f"n{at} = Naps {{ value: n{at - 1}.value  seconds: 0.01 }}" for at in range(1, 100)
    )
    async with scene.worker(claims=True) as worker:
        run, end = await scene.run(worker, naps)
        assert end.status == "completed"
    async with scene.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM snapshots WHERE run = $1", run) <= 1
    kinds = await scene.kinds(run)
    assert kinds.count("node_resumed") == 100
    assert kinds.count("node_completed") == 100
