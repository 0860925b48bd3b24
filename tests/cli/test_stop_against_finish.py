"""A stop that lands as its run finishes: one of the two has happened, and both sides say the same."""

from __future__ import annotations

import asyncio
import random

from tests.cli.weft_process import Weft
from weft.service.compiling import check, required_program
from weft.service.ids import find_run
from weft.service.listing import TERMINAL, Cursor
from weft.service.opening import open_store
from weft.service.projects import load_project
from weft.service.running import open_runtime
from weft.service.stopping import stop_runs
from weft.settings import load_settings

ROUNDS = 200


async def test_fault_b01_stop_against_finish_200_rounds(weft: Weft):
    file = weft.write("one.weft", "only = Linger")
    loaded = load_project(file)
    program = required_program(check(file, loaded))
    settings = load_settings(loaded.project, database_url=weft.url)
    outcomes: list[str] = []
    async with open_store(settings) as store, open_runtime(store, [loaded]) as runtime:
        number = await store.project_number(loaded.project)
        for _ in range(ROUNDS):
            run = await runtime.start(loaded.project, program)
            await asyncio.sleep(random.uniform(0, 0.02))
            stopped = await stop_runs(store.database, number, [run])
            end = await runtime.ended(loaded.project, run)
            row = await find_run(store.database, str(run))
            kinds = [event.event["kind"] async for event in Cursor(store.database, row).news()]
            assert sum(kind in TERMINAL for kind in kinds) == 1
            assert kinds[-1] == f"execution_{row.status}"
            assert end.status == row.status
            assert stopped.runs == ([run] if row.status == "cancelled" else [])
            outcomes.append(row.status)
    assert set(outcomes) == {"completed", "cancelled"}, "the offsets never met the race"
