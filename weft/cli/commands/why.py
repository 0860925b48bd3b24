"""`weft why`: what a run waits for, since when, what will wake it, who could run it, and what a stop would do."""

from __future__ import annotations

from weft.cli.lines import iso, one_line
from weft.cli.output import STATUS_COLOURS, Output
from weft.cli.session import opened
from weft.cli.shell import COMPLETED
from weft.cli.speaking import due_text, how_to_end, named, what
from weft.service import doors
from weft.service.ids import find_run
from weft.service.shapes import wait_json, why_json
from weft.service.waits import frames_text
from weft.service.why import TIMED, Waiting, Why, why


async def why_run(piece: str, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        stands = await why(store.database, await find_run(store.database, piece))
        address = await doors.address(store.database)
    if json:
        waits = [{**wait_json(each), "ends": how_to_end(each, address)} for each in stands.waits]
        out.value({**why_json(stands), "waits": waits})
    else:
        _print(out, stands, address)
    out.flush()
    return COMPLETED


def _print(out: Output, stands: Why, address: str | None) -> None:
    run = stands.run
    head = f"run {run.run} of {one_line(run.project_name)} ({one_line(run.entry)})"
    if run.ended:
        assert run.ended_at is not None
        because = run.error or run.reason
        verb = "was cancelled" if run.status == "cancelled" else f"has {run.status}"
        out.line(f"{head} {verb} at {iso(run.ended_at)}" + (f": {one_line(because)}" if because else ""))
        return
    out.line(f"{head} is {run.status}", STATUS_COLOURS.get(run.status))
    if stands.here.worker is not None:
        out.line(f"worker {stands.here.worker} drives it ({stands.here.host}, process {stands.here.pid})")
    for node, frames in stands.running:
        out.line(f"{one_line(node)}{frames_text(frames)} runs" if stands.here.worker else f"{one_line(node)} will run")
    for each in stands.waits:
        _print_wait(out, each, stands, address)
    if stands.here.deadline is not None:
        out.line(f"its deadline ends it at {due_text(stands.here.deadline)}")
    out.line(_workers(stands))
    out.line(f"a stop {_stop(stands)}: weft stop {run.run}")


def _print_wait(out: Output, each: Waiting, stands: Why, address: str | None) -> None:
    where = "" if each.run == stands.run.run else f" (in run {each.run}, below it)"
    beside = "" if each.alone else " and all beside it" if each.all_of else " or whatever beside it comes first"
    out.line(f"{named(each)}{where} waits for {what(each)}{beside}, since {iso(each.since)}")
    if each.kind in TIMED:
        assert each.due is not None
        out.line(f"  goes on at {due_text(each.due)}; at once: {how_to_end(each, address)}")
        return
    out.line(f"  {how_to_end(each, address)}")
    if each.due is not None:
        out.line(f"  times out at {due_text(each.due)}")


def _workers(stands: Why) -> str:
    name = one_line(stands.run.project_name)
    if stands.workers:
        first, *others = map(str, stands.workers)
        if others:
            return f"workers {', '.join([first, *others])} of {name} are alive"
        return f"worker {first} of {name} is alive"
    if stands.here.worker is not None:
        return f"no worker of {name} is alive but the process that started it"
    return f"no worker of {name} is alive: nothing goes on until weft worker or weft serve is started"


def _stop(stands: Why) -> str:
    """As in: a stop would …"""
    below = len(stands.below)
    parts = ["cancels it" if not below else f"cancels it and {below} run{'' if below == 1 else 's'} below it"]
    forms = sum(each.kind == "form" for each in stands.waits)
    if forms:
        parts.append("its form can then not be answered any more" if forms == 1 else f"its {forms} forms go with it")
    if stands.running and stands.here.worker is not None:
        parts.append("what runs is told to end")
    return "; ".join(parts)
