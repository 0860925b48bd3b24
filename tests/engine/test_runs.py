"""Whole programs from start to end."""

from __future__ import annotations

from tests.engine.scene import Scene


async def test_a_chain_runs_to_its_end(scene: Scene) -> None:
    async with scene.worker() as worker:
        run, end = await scene.run(worker, "a = Step { value: 1 }\nb = Step { value: a.value }")
    assert end.status == "completed"
    assert [each for each in await scene.events(run) if each["kind"] == "port_emitted"] == [
        {"kind": "port_emitted", "node": "a", "call": 0, "port": "value", "value": 2},
        {"kind": "port_emitted", "node": "b", "call": 0, "port": "value", "value": 3},
    ]
    assert (await scene.kinds(run))[-1] == "execution_completed"


async def test_a_queued_run_is_claimed(scene: Scene) -> None:
    [run] = await scene.queue("a = Step { value: 1 }")
    async with scene.worker(claims=True):
        assert (await scene.until_ended(run)).status == "completed"


async def test_a_killed_worker_leaves_a_run_that_the_next_one_finishes(scene: Scene) -> None:
    [run] = await scene.queue("a = Sleep { value: 1  seconds: 0.8 }\nb = Step { value: a.value }")
    async with scene.process() as first:
        await scene.until_started(run, "a")
        await first.kill()
    async with scene.process():
        assert (await scene.until_ended(run)).status == "completed"
    assert await scene.kinds(run, "a") == [
        "node_kicked",
        "node_started",
        "node_resumed",
        "port_emitted",
        "node_completed",
    ]


async def test_a_stop_ends_a_running_body_and_its_run(scene: Scene) -> None:
    async with scene.worker() as worker:
        victim = await worker.start(scene.project, scene.program("a = Sleep { value: 1 }"), tags=["t"])
        await scene.until_started(victim, "a")
        asker, end = await scene.run(worker, 'stop = StopTagged { tags: ["t"] }')
        assert end.status == "completed"
        assert (await worker.ended(victim, scene.project)).status == "cancelled"
    events = await scene.events(victim)
    reason = f"Stopped by execution {asker} (tag t)"
    assert [(each["kind"], each["reason"]) for each in events[-2:]] == [
        ("node_cancelled", reason),
        ("execution_cancelled", reason),
    ]
    assert events[-1]["cause"] == {"kind": "execution", "by": str(asker), "tag": "t"}
