"""`weft forms`, `weft answer` and `weft wake`: what waits for a person, and ending a wait."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.cli.lines import iso, one_line
from weft.cli.output import Output, is_terminal, note
from weft.cli.session import opened, taken_up, who_goes_on
from weft.cli.shell import COMPLETED, NOT_ENDED
from weft.cli.speaking import answer_line, due_text, page, user
from weft.errors import UsageError
from weft.service import doors, waits
from weft.service.ids import find_run
from weft.service.shapes import form_json
from weft.service.waits import Ended, OpenForm, frames_text

if TYPE_CHECKING:
    from weft.service.opening import Store


@dataclass(frozen=True, slots=True)
class Request:
    """An answer as it was typed."""

    token: str
    values: list[str]
    skip: bool


async def forms(project: str | None, limit: int, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        found = await waits.open_forms(store, project, limit=limit)
        address = await doors.address(store.database)
    for form in found:
        if json:
            out.value(form_json(form))
            continue
        until = "" if form.due is None else f"  until {due_text(form.due)}"
        where = f"{one_line(form.run.project_name)}  {one_line(form.node)}{frames_text(form.frames)}"
        out.line(f"{iso(form.since)}  {where}  {one_line(form.title)}{until}", "cyan")
        out.line(f"  {answer_line(form)}")
        out.line(f"  {page(form.path, address)}")
    out.flush()
    if not found and not json:
        note("no forms wait")
    elif len(found) == limit and not json:
        note(f"hint: there may be more: --limit {2 * limit}")
    return COMPLETED


async def answer(request: Request, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    given = _given(request)
    async with opened(database_url) as store:
        token = await waits.find_form(store, request.token)
        if given is None and not request.skip:
            form = await waits.form(store, token)
            given = await _asked(form)
            if given is None:
                note(f"left open: {answer_line(form)}")
                return NOT_ENDED
        ended = await waits.answer(store, token, given, by=user(), skip=request.skip)
        await _tell(store, out, [ended], "skipped" if request.skip else "answered")
    return COMPLETED


def _given(request: Request) -> dict[str, Any] | None:
    """The answers of the command line or of stdin; None where there are none."""
    if request.skip:
        if request.values:
            raise UsageError("--skip takes no answers")
        return None
    if "-" in request.values:
        if len(request.values) > 1:
            raise UsageError("give the answers as key=value or as `-`, not both")
        return _from_stdin()
    if not request.values:
        return None if is_terminal(sys.stdin) and is_terminal(sys.stderr) else {}
    given: dict[str, list[str]] = {}
    for pair in request.values:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{pair!r} is not KEY=VALUE", hint="Write for example ok=approve note='looks good'.")
        given.setdefault(key.strip(), []).append(value)
    return {key: found[0] if len(found) == 1 else found for key, found in given.items()}


def _from_stdin() -> dict[str, Any]:
    if is_terminal(sys.stdin):
        note("the answers as a JSON object, then Ctrl-D:")
    try:
        value = jsonlib.loads(sys.stdin.buffer.read())
    except UnicodeDecodeError:
        raise UsageError("what came on stdin is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"what came on stdin is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError("what came on stdin is not a JSON object of answers by key")
    return value


async def _asked(form: OpenForm) -> dict[str, Any] | None:
    from weft.cli.asking.editor import editing
    from weft.cli.asking.questions import LeftOpen, ask

    with editing() as editor:
        try:
            return await ask(form, editor)
        except LeftOpen:
            return None


async def wake(piece: str, node: str, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        run = await find_run(store.database, piece)
        await _tell(store, out, await waits.wake(store, run, node, by=user()), "woken")
    return COMPLETED


async def _tell(store: Store, out: Output, ended: Sequence[Ended], what: str) -> None:
    """What was done, and who goes on with the run."""
    run = await taken_up(store.database, ended[-1].run)
    if out.json:
        for each in ended:
            out.value({"token": each.token, "run": str(run.run), "status": run.status, "done": what})
        out.flush()
    note(f"{what}: run {run.run} is {run.status}; {await who_goes_on(store.database, run)}")
