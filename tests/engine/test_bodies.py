"""Bodies that misbehave and bodies that are stopped: the record says what happened, and nothing comes after it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from tests.engine.scene import Scene
from weft.engine.worker import Worker
from weft.store.runs import endings


async def stop(scene: Scene, worker: Worker, run: UUID) -> None:
    report = await endings.end_runs(scene.database, scene.project, [run], "Cancelled by user", {"kind": "user"})
    worker.tell_ended(report.ended)


async def started(scene: Scene, worker: Worker, text: str) -> UUID:
    run = await worker.start(scene.project, scene.program(text))
    await scene.until_started(run, "a")
    while not worker.executions[run].bodies:
        await asyncio.sleep(0.01)
    return run


async def stopped(scene: Scene, worker: Worker, text: str) -> UUID:
    """The run of a program whose node `a` was running when it was stopped, once its body has left."""
    run = await started(scene, worker, text)
    execution = worker.executions[run]
    await asyncio.sleep(0.05)
    bodies = list(execution.bodies.values())
    await stop(scene, worker, run)
    await asyncio.wait(bodies)
    assert not execution.bodies
    return run


async def ends_with_the_stop(scene: Scene, run: UUID) -> list[dict[str, Any]]:
    events = await scene.events(run)
    assert [each["kind"] for each in events[-2:]] == ["node_cancelled", "execution_cancelled"]
    assert (await scene.status(run)).status == "cancelled"
    return events


async def test_fault_b10_a_value_after_the_stop_is_dropped(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await stopped(scene, worker, "a = SwallowsCancel\nb = Debug { data: a.value }")
    events = await ends_with_the_stop(scene, run)
    assert not any(each["kind"] == "port_emitted" for each in events)


async def test_race_30_a_body_that_takes_the_cancel_back_meets_it_again(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await stopped(scene, worker, "a = Uncancels\nb = Debug { data: a.value }")
    events = await ends_with_the_stop(scene, run)
    assert not any(each["kind"] == "port_emitted" for each in events)


async def test_race_30_a_time_out_inside_a_body_is_no_cancel_of_the_run(scene: Scene) -> None:
    async with scene.worker() as worker:
        _, end = await scene.run(worker, "a = TimesOutInside\nb = Debug { data: a.value }")
    assert end.status == "completed"


async def test_race_30_a_cancellation_that_nobody_asked_for_fails_the_node_alone(scene: Scene) -> None:
    async with scene.worker() as worker:
        run, end = await scene.run(worker, "a = CancelsItself\nb = Step { value: 1 }")
    assert end.status == "failed"
    assert "cancelled from inside" in str(end.error)
    assert "node_completed" in await scene.kinds(run, "b")


async def test_fault_b08_an_error_made_of_the_cancel_is_kept_as_detail(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await stopped(scene, worker, "a = BreaksInCleanUp")
    await ends_with_the_stop(scene, run)
    [late] = await scene.aftermath(run)
    assert (late["kind"], late["node"], late["error"]["message"]) == ("node_failed", "a", "cleanup")


async def test_fault_b13_finally_runs_once_in_a_worker_too(scene: Scene, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with scene.worker() as worker:
        await stopped(scene, worker, f'a = WritesMarker {{ file: "{here}" }}')
    assert here.read_text() == "finally\n"
    [run] = await scene.queue(f'a = WritesMarker {{ file: "{there}" }}')
    async with scene.process(), scene.worker() as other:
        await scene.until_started(run, "a")
        await asyncio.sleep(0.2)
        await stop(scene, other, run)
        while not there.exists():
            await asyncio.sleep(0.02)
    assert there.read_text() == "finally\n"


async def test_a_body_that_never_leaves_is_named_and_its_run_has_ended_at_once(scene: Scene) -> None:
    async with scene.worker(grace=scene.settings.grace / 50) as worker:
        run = await started(scene, worker, "a = NeverLeaves { seconds: 1.5 }")
        await stop(scene, worker, run)
        await ends_with_the_stop(scene, run)
        while not (late := await scene.aftermath(run)):
            await asyncio.sleep(0.02)
    assert "left behind" in late[0]["text"]


async def test_fault_b04_and_race_31_a_thread_is_left_behind_and_its_result_dropped(
    scene: Scene, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    async with scene.worker() as worker:
        run = await started(scene, worker, f'a = InThread {{ file: "{counter}"  seconds: 1.5 }}')
        while not counter.exists():
            await asyncio.sleep(0.01)
        await stop(scene, worker, run)
        await ends_with_the_stop(scene, run)
        while not (late := await scene.aftermath(run)):
            await asyncio.sleep(0.02)
        counted = int(counter.read_text() or 0)
        while int(counter.read_text() or 0) <= counted:
            await asyncio.sleep(0.02)
    assert "thread" in late[0]["text"]
    await ends_with_the_stop(scene, run)


async def test_fault_b12_the_whole_process_group_is_gone(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    async with scene.worker() as worker:
        run = await started(scene, worker, f'a = StartsProcesses {{ file: "{file}" }}')
        while not (file.exists() and len(file.read_text().split()) == 2):
            await asyncio.sleep(0.02)
        pids = [int(each) for each in file.read_text().split()]
        assert all(psutil.pid_exists(pid) for pid in pids)
        await stop(scene, worker, run)
        while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids):
            await asyncio.sleep(0.02)
    await ends_with_the_stop(scene, run)


async def test_what_a_body_logs_after_the_stop_does_not_reopen_the_journal(scene: Scene) -> None:
    async with scene.worker() as worker:
        run = await stopped(scene, worker, "a = LogsAtTheEnd")
    await ends_with_the_stop(scene, run)


async def test_a_body_that_exits_fails_its_node_and_not_the_worker(scene: Scene) -> None:
    async with scene.worker() as worker:
        _, end = await scene.run(worker, "a = Exits")
        assert end.status == "failed"
        _, end = await scene.run(worker, "a = Step { value: 1 }")
        assert end.status == "completed"


async def test_race_62_a_failed_node_lets_the_other_branches_finish(scene: Scene) -> None:
    async with scene.worker() as worker:
        run, end = await scene.run(
            worker,
            "a = Fails\nnext = Step { value: a.value }\nslow = Sleep { value: 1  seconds: 0.3 }\n"
            "after = Step { value: slow.value }",
        )
    assert (end.status, end.error) == ("failed", "a failed: broken")
    assert "node_completed" in await scene.kinds(run, "after")
    assert (await scene.kinds(run, "next")) == ["node_skipped"]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("expression: \"float('nan')\"", "a.value"),
        ("expression: \"'text'\"", "value"),
        ("expression: \"'a\\x00b'\"  port: \"other\"", "a.other"),
        ("expression: \"chr(0xd800)\"  port: \"other\"", "a.other"),
        ('expression: "2 ** 63"', "a.value"),
        ('expression: "1"  port: "vlaue"', "did you mean `value`"),
        ('expression: "1"  twice: true', "emitted or closed before"),
        ("expression: \"'x' * 2_000_000\"  port: \"other\"", "1,048,576"),
    ],
)
async def test_a_bad_emission_fails_the_node_by_name_and_the_others_go_on(
    scene: Scene, node: str, message: str
) -> None:
    async with scene.worker() as worker:
        run, end = await scene.run(worker, f"a = Emits {{ {node} }}\nb = Step {{ value: 1 }}")
    assert end.status == "failed"
    assert "`a" in str(end.error)
    assert message in str(end.error)
    assert "node_completed" in await scene.kinds(run, "b")


async def test_fault_b66_an_idle_worker_after_many_ends_in_one_tick_uses_no_processor(scene: Scene) -> None:
    fan = "seed = Step { value: 0 }\n" + "\n".join(f"n{at} = Step {{ value: seed.value }}" for at in range(50))
    async with scene.worker() as worker:
        await asyncio.gather(*[scene.run(worker, fan) for _ in range(5)])
        await stopped(scene, worker, "a = Sleep { value: 1 }")
        before = os.times()
        await asyncio.sleep(2)
        after = os.times()
    used = (after.user + after.system) - (before.user + before.system)
    assert used < 0.5, f"{used:.2f} s of processor in 2 idle seconds"
