"""Runs over the API: which there are, one and why it does not go on, starting, stopping, waking; and runs by tag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import anyio.to_thread
from starlette.responses import JSONResponse, Response

from weft.errors import Conflict, NotFound
from weft.flow.selection import Selection
from weft.lang.diagnostics import nearest
from weft.lang.graph import Program
from weft.lang.storable import unstorable
from weft.rules.tags import check, normalise
from weft.service import listing, stopping, waits
from weft.service.compiling import ENTRY_FILES, child_program
from weft.service.listing import STATUSES, ProjectRow, RunRow
from weft.service.projects import LoadedProject
from weft.service.running import start_detached
from weft.service.shapes import run_json, why_json
from weft.service.why import why
from weft.web.access import visible
from weft.web.api.finding import run_at, shown
from weft.web.api.table import Call
from weft.web.reading import invalid, json_object, one_query, text_of, whole_query
from weft.web.refusals import Refused

MOST: Final = 500
DEFAULT: Final = 50
LONGEST_REASON: Final = 500
LONGEST_DEADLINE: Final = 36_500 * 24 * 3600

_COMPILING = anyio.CapacityLimiter(1)
"""One program at a time: compiling takes the processor, which the runs need too."""


async def list_runs(call: Call) -> Response:
    tags = [normalise(each) for each in call.request.query_params.getlist("tag")]
    return JSONResponse(await _page(call, tags))


async def runs_of_tag(call: Call) -> Response:
    return JSONResponse(await _page(call, [normalise(call.at("tag"))]))


async def _page(call: Call, tags: list[str]) -> dict[str, Any]:
    query = call.request
    if call.who.tag is not None:
        tags = [*tags, call.who.tag]
    statuses = query.query_params.getlist("status")
    for each in statuses:
        if each not in STATUSES:
            close = nearest(each, STATUSES)
            raise invalid(f"there is no status {each[:80]!r}" + (f"; did you mean {close}?" if close else ""))
    limit = max(1, whole_query(query, "limit", DEFAULT, MOST))
    offset = whole_query(query, "offset", 0, 2**31 - 1 - MOST)
    node = one_query(query, "node")
    if node is not None and unstorable(node) is not None:
        raise invalid("`node` is the name of a node")
    found = await listing.executions(
        call.door.store.database,
        among=await visible(call.door.store, call.who, one_query(query, "project")),
        statuses=statuses,
        tags=tags,
        since=_instant(one_query(query, "since")),
        node=node,
        limit=limit,
        offset=offset,
    )
    return {"runs": [run_json(each) for each in found], "next_offset": offset + limit if len(found) == limit else None}


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        # What PostgreSQL cannot hold in the ids of its runs has no runs before it either.
        if at.tzinfo is not None and 1970 <= at.year < 9999:
            return at
    except ValueError:
        pass
    raise invalid("`since` is an instant with its zone", "Write it as 2030-01-02T09:00:00Z; a + of the query is %2B.")


async def one_run(call: Call) -> Response:
    stands = await why(call.door.store.database, await run_at(call))
    return JSONResponse({**run_json(stands.run), "why": shown(call, why_json(stands))})


# --- starting ---------------------------------------------------------------------------------------------


async def start_run(call: Call) -> Response:
    given = await json_object(
        call.request, ["project", "program", "inputs", "tags", "deadline", "targets", "before", "from", "emit"]
    )
    served = await _served(call, text_of(given, "project"))
    selection = Selection(
        tuple(_texts(given, "targets")),
        tuple(_texts(given, "before")),
        _values(given, "from"),
        _values(given, "emit"),
    )
    inputs = _values(given, "inputs")
    # Who sees the runs of one tag alone starts such a run.
    own = [] if call.who.tag is None else [call.who.tag]
    tags = list(dict.fromkeys([*own, *(normalise(each) for each in _texts(given, "tags"))]))
    if tags:
        check(tags)
    deadline = _deadline(given.get("deadline"))
    program = await _program(served, text_of(given, "program"), inputs)
    run = await start_detached(
        call.door.store,
        served.project,
        program,
        selection=selection if selection.to_json() else None,
        tags=tags,
        deadline=deadline,
    )
    return JSONResponse({"run": str(run), "status": "queued"}, 201, {"location": f"/api/v1/runs/{run}"})


async def _served(call: Call, name: str | None) -> LoadedProject:
    """The project that is meant among those that this process serves and the caller sees.

    Raises:
        NotFound: none of that name.
        Refused: several, and none was named.
    """
    store, who = call.door.store, call.who
    served = [each for each in call.door.served if who.sees_project(await store.project_number(each.project))]
    found = [each for each in served if each.project.id == name] or [
        each for each in served if name in (None, each.project.name)
    ]
    if not found:
        raise NotFound(f"this weft serve has no project {str(name)[:80]!r}", hint="Start it with --project PATH.")
    if len(found) > 1:
        raise invalid("which project? give `project`", f"There are: {', '.join(each.project.id for each in found)}.")
    return found[0]


async def _program(served: LoadedProject, path: str | None, inputs: Mapping[str, Mapping[str, Any]]) -> Program:
    if path is None:
        root = served.project.root
        path = next((each for each in ENTRY_FILES if (root / each).is_file()), ENTRY_FILES[0])
    elif not path.endswith(".weft"):
        raise invalid("`program` is the path of a .weft file, from the project's folder")
    return await anyio.to_thread.run_sync(child_program, served, path, inputs, limiter=_COMPILING)


def _texts(given: Mapping[str, Any], key: str) -> list[str]:
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise invalid(f"`{key}` is a list of texts")
    return value


def _values(given: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    value = given.get(key, {})
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        raise invalid(f"`{key}` is an object of objects: values by port, by node", 'As in {"ask": {"text": "hello"}}.')
    obstacle = unstorable(value)
    if obstacle is not None:
        raise invalid(f"`{key}` cannot be stored: {obstacle}")
    return value


def _deadline(value: Any) -> timedelta | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_DEADLINE:
        raise invalid("`deadline` is a number of seconds, more than zero and at most 100 years")
    return timedelta(seconds=value)


# --- ending and waking ------------------------------------------------------------------------------------


async def stop_run(call: Call) -> Response:
    reason = _reason(await json_object(call.request, ["reason"], empty=True))
    run = await run_at(call)
    database = call.door.store.database
    stopped = await stopping.stop_runs(database, run.project, [run.run], reason)
    if not stopped.runs:
        now = await listing.refreshed(database, run)
        raise _unstopped(now, stopped.failed.get(run.run))
    return JSONResponse({"stopped": [str(each) for each in stopped.runs], "failed": []})


def _unstopped(run: RunRow, failure: str | None) -> Conflict:
    if failure is not None:
        return Conflict(f"run {run.run} could not be stopped: {failure}")
    return Conflict(f"run {run.run} had already ended: {run.status}")


async def stop_tag(call: Call) -> Response:
    given = await json_object(call.request, ["project", "reason"], empty=True)
    tag, reason, name = normalise(call.at("tag")), _reason(given), text_of(given, "project")
    if call.who.tag not in (None, tag):
        raise Refused(403, "forbidden", f"this token is for runs tagged {call.who.tag}")
    project = _one_project(await visible(call.door.store, call.who, name))
    stopped = await stopping.stop_tagged(call.door.store.database, project.key, tag, reason)
    return JSONResponse(
        {"stopped": [str(each) for each in stopped.runs], "failed": [str(each) for each in stopped.failed]}
    )


def _one_project(found: list[ProjectRow]) -> ProjectRow:
    if len(found) != 1:
        raise invalid("which project? give `project`: a tag means something in one project alone")
    return found[0]


def _reason(given: Mapping[str, Any]) -> str | None:
    reason = text_of(given, "reason")
    if reason is not None and (len(reason) > LONGEST_REASON or unstorable(reason) is not None):
        raise invalid(f"`reason` is a text of at most {LONGEST_REASON} characters")
    return reason


async def wake_node(call: Call) -> Response:
    node = text_of(await json_object(call.request, ["node"]), "node")
    if node is None:
        raise invalid("`node` names the node that waits")
    ended = await waits.wake(call.door.store, await run_at(call), node, by=call.who.name)
    return JSONResponse({"run": str(ended[-1].run.run), "status": ended[-1].run.status, "woken": len(ended)})
