"""What went wrong elsewhere with runs that wait: retries and stops, timers and stops, joins, edits, take-overs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

from tests.engine.scene import Scene
from weft.store.runs import endings, waits

ASK = 'ask = HumanQuery { title: "Ok?"  fields: [{ "kind": "text_input", "key": "note" }] }'
BY_USER = ("Cancelled by user", {"kind": "user"})


async def stop(scene: Scene, run: UUID) -> list[str]:
    """Stop the run; the kinds of events that it has then."""
    report = await endings.end_runs(scene.database, scene.project, [run], *BY_USER)
    assert [each.run for each in report.ended] == [run]
    return await scene.kinds(run)


async def test_fault_b11_a_node_that_fails_under_a_stop_is_not_tried_again(scene: Scene, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    async with scene.worker(claims=True) as worker:
        program = scene.program(f'a = FailsForLong {{ file: "{tries}"  seconds: 60 }}')
        run = await worker.start(scene.project, program)
        while not tries.exists():
            await asyncio.sleep(0.01)
        report = await endings.end_runs(scene.database, scene.project, [run], *BY_USER)
        worker.tell_ended(report.ended)
        before = await scene.kinds(run)
        while worker.executions:
            await asyncio.sleep(0.01)
    assert await scene.kinds(run) == before and before[-2:] == ["node_cancelled", "execution_cancelled"]
    assert tries.read_text().split() == ["try"]


async def test_fault_b11_and_b16_a_stop_in_the_rest_between_two_tries_is_the_end(scene: Scene, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program(f'a = FailsForLong {{ file: "{tries}" }}'))
        await scene.until_status(run, "waiting")
        before = await stop(scene, run)
        assert (await scene.status(run)).status == "cancelled" and await scene.waits(run) == []
        async with scene.database.connection() as connection:
            assert (await waits.take_due(connection, 10)).answered == []
    assert await scene.kinds(run) == before and tries.read_text().split() == ["try"]


async def test_fault_b14_and_b79_a_timer_of_a_stopped_run_is_gone(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        text = "a = Naps { value: 1  seconds: 1.5 }\nb = Step { value: a.value }"
        run = await worker.start(scene.project, scene.program(text))
        await scene.until_status(run, "waiting")
        before = await stop(scene, run)
        assert await scene.waits(run) == []
        assert before[-2:] == ["node_cancelled", "execution_cancelled"]
        await asyncio.sleep(2)
        assert await scene.kinds(run) == before
    cancelled = [each for each in await scene.events(run) if each["kind"] == "node_cancelled"]
    assert [(each["node"], each["reason"]) for each in cancelled] == [("a", "Cancelled by user")]


async def test_fault_b25_a_run_below_that_is_stopped_ends_the_wait_for_it(scene: Scene) -> None:
    scene.programs["child.weft"] = "n = Naps { seconds: 60 }"
    starts = "\n".join(f'c{at} = StartsChild {{ program: "child.weft" }}' for at in range(3))
    async with scene.worker(claims=True) as worker:
        root = await worker.start(scene.project, scene.program(starts))
        await scene.until_status(root, "waiting")
        below = "SELECT id FROM scopes WHERE parent = $1 ORDER BY id"
        async with scene.database.connection() as connection:
            while len(children := await connection.fetch(below, root)) < 3:
                await asyncio.sleep(0.02)
        for row in children:
            await scene.until_status(row["id"], "waiting")
        report = await endings.end_runs(scene.database, scene.project, [children[0]["id"]], *BY_USER)
        worker.tell_ended(report.ended)
        await scene.until(root, lambda events: any(each["kind"] == "port_emitted" for each in events))
        emitted = [each["value"] for each in await scene.events(root) if each["kind"] == "port_emitted"]
        assert emitted == ["cancelled"]
        for row in children[1:]:
            await scene.until_status(row["id"], "waiting")


async def test_fault_b38_what_hangs_in_a_saved_outcome_is_taken_over(scene: Scene, tmp_path: Path) -> None:
    go = tmp_path / "go"
    [run] = await scene.queue(f'a = HangsInRun {{ file: "{go}" }}\nb = Step {{ value: a.value }}')
    async with scene.process() as first:
        await scene.until_started(run, "a")
        await first.kill()
    go.touch()
    async with scene.process():
        assert (await scene.until_ended(run)).status == "completed"


async def test_fault_b40_a_form_that_times_out_goes_on_by_the_documented_port(scene: Scene) -> None:
    form = 'ask = HumanQuery { title: "Ok?"  timeoutSecs: 0.3  fields: [{ "kind": "text_input", "key": "note" }] }'
    async with scene.worker(claims=True) as worker:
        wired, end = await scene.run(
            worker, f"{form}\nlate = Debug {{ data: ask.timedOut }}\nsaid = Debug {{ data: ask.note }}"
        )
        assert end.status == "completed"
        assert "node_completed" in await scene.kinds(wired, "late")
        assert await scene.kinds(wired, "said") == ["node_skipped"]
        # Where nobody asked to hear of it, it is a failure that says so.
        _, end = await scene.run(worker, form)
        assert end.status == "failed" and "within 0.3 seconds" in str(end.error)


async def test_race_38_a_wake_leaves_the_others_that_wait_alone(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(
            scene.project, scene.program("a = Naps { seconds: 0.4 }\nb = Naps { seconds: 1.2 }\nc = FormOrTimer")
        )
        await scene.until(
            run, lambda events: any(each.get("node") == "a" and each["kind"] == "node_completed" for each in events)
        )
        await scene.until_status(run, "waiting")
        for node in ("b", "c"):
            assert await scene.kinds(run, node) == [
                "node_kicked",
                "node_started",
                "suspension_registered",
                "node_suspended",
            ]
        await stop(scene, run)


async def test_race_49_what_waits_is_not_stuck_and_what_is_stuck_does_not_wait(scene: Scene) -> None:
    async with scene.worker(claims=True) as worker:
        run = await worker.start(
            scene.project, scene.program("a = FormOrTimer { seconds: 60 }\nb = Step { value: a.which }")
        )
        assert (await scene.until_status(run, "waiting")).error is None
        await stop(scene, run)
        never = await worker.start(scene.project, scene.program("a = NeverEmits\nb = Debug { data: a.value }"))
        assert (await worker.ended(never, scene.project)).status != "waiting"


async def test_fault_b15_a_stop_in_the_moment_the_timer_is_due_is_the_end_or_comes_too_late(scene: Scene) -> None:
    async with scene.worker(claims=True) as first, scene.worker(claims=True):
        program = scene.program("a = Naps { value: 1  seconds: 0.4 }\nb = Naps { value: a.value  seconds: 60 }")
        runs = [await first.start(scene.project, program) for _ in range(20)]
        await asyncio.sleep(0.35)
        for run in runs:
            await endings.end_runs(scene.database, scene.project, [run], *BY_USER)
            await asyncio.sleep(0.01)
        before = [await scene.kinds(run) for run in runs]
        await asyncio.sleep(1)
        for run, kinds in zip(runs, before, strict=True):
            assert (await scene.status(run)).status == "cancelled" and await scene.waits(run) == []
            assert kinds == await scene.kinds(run) and kinds.count("execution_cancelled") == 1
            assert kinds.count("suspension_resolved") <= 1


async def test_fault_b32_what_was_upstream_of_a_wait_does_not_run_again_elsewhere(scene: Scene) -> None:
    [run] = await scene.queue(f"first = Step {{ value: 1 }}\n{ASK}\nlast = Debug {{ data: ask.note }}")
    async with scene.process() as worker:
        await scene.until_status(run, "waiting")
        await worker.kill()
    await scene.answer((await scene.form(run)).token, {"note": "go"})
    async with scene.process():
        assert (await scene.until_ended(run)).status == "completed"
    for node in ("first", "ask", "last"):
        assert (await scene.kinds(run, node)).count("node_completed") == 1
    assert (await scene.kinds(run, "first")).count("node_started") == 1


async def test_fault_b39_each_branch_asks_and_the_run_waits_for_both(scene: Scene) -> None:
    asks = "\n".join(ASK.replace("ask", name, 1) for name in ("left", "right"))
    async with scene.worker(claims=True) as worker:
        run = await worker.start(scene.project, scene.program(asks))
        await scene.until_status(run, "waiting")
        tokens = {each.node: each.token for each in await scene.waits(run)}
        assert sorted(tokens) == ["left", "right"]
        await scene.answer(tokens["left"], {"note": "yes"})
        await scene.until(
            run, lambda events: any(each.get("node") == "left" and each["kind"] == "node_completed" for each in events)
        )
        assert (await scene.until_status(run, "waiting")).ended_at is None
        await scene.answer(tokens["right"], {"note": "yes"})
        assert (await scene.until_ended(run)).status == "completed"
