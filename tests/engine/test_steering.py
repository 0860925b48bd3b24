"""The newest of several wins: whole runs that tag themselves and stop their elders, in one process and in several."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID

import pytest

from tests.engine.cast import (
    another,
    call_for_claims,
    check_causes,
    check_no_deadlock,
    end,
    fetch,
    live,
    newest,
    until,
    until_carried_out,
    value,
)
from tests.engine.network import Network
from tests.engine.scene import KEY, Scene
from weft.engine.worker import Worker
from weft.flow.events import ExecutionStarted, encode
from weft.store.runs import programs, runs
from weft.store.runs.runs import NewRun

SENDERS = 3
MESSAGES = 3

MESSAGE = """
claim = TagRun {{ sender: "{sender}" }}
stop = StopTagged {{ _should_flow: claim.done  sender: "{sender}" }}
draft = Sleep {{ _should_flow: stop.done  seconds: 0.5 }}
answer = Debug {{ data: draft.value }}
"""


@pytest.fixture
async def network(scene: Scene) -> AsyncIterator[Network]:
    async with Network.open(scene.url) as network:
        yield network


# --- three messages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [0, 0.05])
@pytest.mark.parametrize("processes", [0, 2])
async def test_race_01_and_fault_b20_of_three_messages_only_the_newest_is_answered(
    scene: Scene, apart: float, processes: int, ran: Callable[[str], None]
) -> None:
    """Every answer takes half a second, so each elder is found in the middle of its own."""

    async def say(worker: Worker, sender: str) -> list[UUID]:
        text = MESSAGE.format(sender=sender)
        if processes:
            said = []
            for _ in range(MESSAGES):
                said += await scene.queue(text)
                await call_for_claims(scene)
                await asyncio.sleep(apart)
            return said
        program = scene.program(text)
        said_at_once = []
        for _ in range(MESSAGES):
            said_at_once.append(asyncio.ensure_future(worker.start(scene.project, program)))
            await asyncio.sleep(apart)
        return await asyncio.gather(*said_at_once)

    async with AsyncExitStack() as stack:
        for _ in range(processes):
            await stack.enter_async_context(scene.process())
        worker = await stack.enter_async_context(scene.worker(claims=True, concurrency=8 if processes else 200))
        senders = [f"chat{number}" for number in range(SENDERS)]
        said = await asyncio.gather(*[say(worker, sender) for sender in senders])
        for sender, messages in zip(senders, said, strict=True):
            ends = {run: await scene.until_ended(run) for run in messages}
            answered = [run for run, status in ends.items() if status.status == "completed"]
            assert answered == [await newest(scene, sender)]
            assert [status.status for status in ends.values()].count("cancelled") == MESSAGES - 1
        if processes:
            drivers = await fetch(scene, "SELECT DISTINCT worker FROM runs")
            assert len(drivers) > 1, "one process drove them all"
        assert await check_causes(scene) == SENDERS * (MESSAGES - 1)
    ran(f"{SENDERS} senders of {MESSAGES} messages")


# --- many at once -----------------------------------------------------------------------------------------

RACER = """
claim = ClaimsAndStops {{ tags: [{tags}]  rest: 0.01 }}
hold = Sleep {{ _should_flow: claim.done }}
"""
AT_ONCE = 4
"""Rounds that go on side by side, each with tags of its own."""


@pytest.mark.parametrize(("together", "share"), [(2, 0.6), (5, 0.3), (20, 0.1)])
async def test_race_07_and_08_and_fault_b83_of_runs_that_tag_and_stop_at_once_the_last_numbered_survives(
    scene: Scene, together: int, share: float, rounds: int, ran: Callable[[str], None]
) -> None:
    """Three tags a call, in any order; two workers here and one in a process of its own; every message to and from the
    database may be late, and so may every step of a body."""
    count = max(round(rounds * share), 1)
    gate = asyncio.Semaphore(AT_ONCE)
    choose = random.Random(together)

    async def race(number: int, workers: list[Worker]) -> None:
        async with gate:
            names = [f"{letter}{number}" for letter in "abc"]
            texts = [
                RACER.format(tags=", ".join(f'"{name}"' for name in choose.sample(names, len(names))))
                for _ in range(together)
            ]
            group: list[UUID] = []
            for text in texts[::2]:
                group += await scene.queue(text)
            await call_for_claims(scene)
            group += await asyncio.gather(
                *[choose.choice(workers).start(scene.project, scene.program(text)) for text in texts[1::2]]
            )
            # Each has been stopped, or has seen its own stops queued and holds on.
            await until(
                scene,
                """SELECT bool_and(ended_at IS NOT NULL OR open_firings::text = '[["hold"]]')
                   FROM runs WHERE id = ANY ($1)""",
                group,
            )
            await until_carried_out(scene, *names)
            left = await live(scene, group)
            assert left == [await newest(scene, name) for name in names][:1]
            assert len({await newest(scene, name) for name in names}) == 1
            await end(scene, *left)

    async with Network.open(scene.url, longest_delay=0.005) as network:
        through = Scene(network.url, scene.database, scene.project, scene.registry)
        async with (
            through.process(),
            another(scene, network.url, claims=True) as first,
            another(scene, network.url, claims=True) as second,
        ):
            await asyncio.gather(*[race(number, [first, second]) for number in range(count)])
    assert await check_causes(scene) == count * (together - 1)
    assert await value(scene, "SELECT count(DISTINCT worker) FROM runs") == 3
    await check_no_deadlock(scene)
    ran(f"{count} rounds of {together}")


# --- ten thousand -----------------------------------------------------------------------------------------


async def test_fault_b54_ten_thousand_runs_that_nobody_claimed_end_by_one_stop(scene: Scene, network: Network) -> None:
    """A handful of statements a thousand, whatever the runs are, and no claiming worker anywhere."""
    count = 10_000
    program = scene.program("a = Step { value: 1 }")
    new = NewRun(program.hash, program.entry, [encode(ExecutionStarted(KEY, program.hash, program.entry, None))])
    async with scene.database.connection() as connection:
        await programs.put(connection, scene.project, program.hash, program.text())
        for _ in range(count // 1000):
            await runs.start(connection, scene.project, None, [new] * 1000)
        await connection.execute(
            "INSERT INTO tags (project, tag, run, number)"
            " SELECT project, 'chat', id, nextval('tag_numbers') FROM runs ORDER BY id"
        )
    async with another(scene, network.url) as worker:
        stop = scene.program('stop = StopTagged { tags: ["chat"] }')
        before, began = network.statements(), time.monotonic()
        asker = await worker.start(scene.project, stop)
        assert (await worker.ended(asker, scene.project)).status == "completed"
        await until(scene, "SELECT NOT EXISTS (SELECT FROM tags WHERE live)")
        await until_carried_out(scene, "chat")
        took, statements = time.monotonic() - began, network.statements() - before
    assert await value(scene, "SELECT count(*) FROM runs WHERE status = 'cancelled'") == count
    assert await value(scene, "SELECT count(*) FROM ready") == 0
    assert statements < 20 * (count // 1000), f"{statements} statements"
    assert took < 10, f"{took:.1f} s"


async def test_fault_b54_queued_runs_are_reached_while_the_worker_is_busy(scene: Scene) -> None:
    async with scene.worker(claims=True, concurrency=1) as busy, scene.worker() as other:
        [running] = await scene.queue("a = Sleep { value: 1 }")
        busy.look_everywhere()
        await scene.until_started(running, "a")
        queued = await scene.queue("a = Step { value: 1 }", 2, tagged=["chat"])
        _, stopped = await scene.run(other, 'stop = StopTagged { tags: ["chat"] }')
        assert stopped.status == "completed"
        assert [(await scene.until_ended(run)).status for run in queued] == ["cancelled"] * 2
        assert (await scene.status(running)).status == "running"
        await end(scene, running)
    assert [await scene.kinds(run, "a") for run in queued] == [[], []]


# --- how soon ---------------------------------------------------------------------------------------------


async def test_race_27_a_stop_arrives_soon_in_a_body_of_another_process(scene: Scene, tmp_path: Path) -> None:
    """From the ask to CancelledError there; the clock is the machine's, which all its processes share."""
    count = 20
    begun, told = tmp_path / "begun", tmp_path / "told"
    async with scene.process(), scene.worker() as worker:
        victims = [
            (await scene.queue(f'a = Waits {{ begun: "{begun}"  told: "{told}" }}', tagged=[f"chat{number}"]))[0]
            for number in range(count)
        ]
        await call_for_claims(scene)
        while not (begun.exists() and len(begun.read_text().splitlines()) == count):
            await asyncio.sleep(0.01)
        asked: dict[str, float] = {}
        for number, run in enumerate(victims):
            asker = scene.program(f'stop = StopTagged {{ tags: ["chat{number}"] }}')
            asked[str(run)] = time.monotonic()
            await worker.start(scene.project, asker)
            while not (told.exists() and str(run) in told.read_text()):
                await asyncio.sleep(0.002)
    took = sorted(float(at) - asked[run] for run, at in map(str.split, told.read_text().splitlines()))
    assert len(took) == count
    assert statistics.median(took) < 0.15, f"{[round(each * 1000) for each in took]} ms"
