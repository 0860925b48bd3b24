"""What runs wait for, and how people and programs outside end such waits: answers, requests, waking.

The first answer counts; one that does not fit changes nothing. Whoever drives the run is told, and where nobody does,
those who could. Not here: what a right answer is (`weft.nodes.answers`), and why a run waits (`whys.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from weft.errors import AnswerRefused, Conflict, NotFound
from weft.flow.texts import to_json
from weft.nodes.answers import normalise, problems, schema
from weft.nodes.firing.ports import encoded
from weft.service.listing import ProjectRow, projects_named
from weft.service.opening import Store
from weft.store import notify
from weft.store.notify import Notice
from weft.store.pool import Connection
from weft.store.runs import listing, waits
from weft.store.runs.listing import RunKey, RunRow
from weft.store.runs.waits import Answered, Resolution, Wait

INBOX_LIMIT = 200


@dataclass(frozen=True, slots=True)
class OpenForm:
    """A form that waits for its answer. `due` is when it times out, None for never; `frames` say which iteration."""

    token: str
    run: RunRow
    node: str
    frames: tuple[int | str, ...]
    title: str
    description: str | None
    fields: tuple[dict[str, Any], ...]
    since: datetime
    due: datetime | None

    @property
    def path(self) -> str:
        """Its address below that of `weft serve`."""
        return f"/f/{self.token}"

    @property
    def cursor(self) -> tuple[datetime, str]:
        """Where a page of the inbox that ends with this form goes on."""
        return self.since, self.token

    def spec(self) -> dict[str, Any]:
        return {"title": self.title, "fields": list(self.fields)}

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a right answer."""
        return schema(self.spec())


@dataclass(frozen=True, slots=True)
class Ended:
    """A wait that was ended, and its run as it is now. `told` is None where nobody drove the run: it is queued."""

    token: str
    run: RunRow
    told: UUID | None


@dataclass(frozen=True, slots=True)
class Request:
    """What came to a webhook. `body` is JSON, form fields or text; the names of `headers` are in lower case."""

    body: Any
    headers: Mapping[str, str]
    query: Mapping[str, str]


# --- forms ------------------------------------------------------------------------------------------------


async def open_forms(
    store: Store,
    project: str | None = None,
    *,
    among: Sequence[ProjectRow] | None = None,
    limit: int = INBOX_LIMIT,
    after: tuple[datetime, str] | None = None,
) -> list[OpenForm]:
    """Forms that wait, the longest waiting first, of one project (its key or name), of those in `among`, or of all;
    `after` is the `cursor` of the last one seen.

    Raises:
        NotFound: there is no such project.
    """
    projects = await projects_named(store.database, project) if among is None else among
    async with store.database.connection() as connection:
        found = await waits.forms(connection, [each.id for each in projects], limit, after)
        return await _forms(connection, found)


async def form(store: Store, token: str) -> OpenForm:
    """The open form of a token; reading answers nothing.

    Raises:
        AlreadyAnswered: with when, by whom and what.
        WaitGone: its run has ended, or another wait came first.
        NotFound: no form ever had this token.
    """
    async with store.database.connection() as connection:
        found = await _of_kind(connection, token, "form")
        for each in await _forms(connection, [found]):
            return each
        await waits.find(connection, token)
    raise NotFound("the run of this form is gone: it was deleted")


async def is_open(store: Store, token: str) -> bool:
    """Whether a wait of this token is open; cheaper than `form`, since it says nothing else."""
    async with store.database.connection() as connection:
        return await waits.is_open(connection, token)


async def answer(
    store: Store,
    token: str,
    values: Mapping[str, Any] | None = None,
    *,
    by: str,
    skip: bool = False,
    complete: bool = False,
) -> Ended:
    """End a form with an answer, or by skipping it. `complete`: every field was shown, as in an HTML page, so that what
    is not there was left empty.

    Raises:
        AnswerRefused: the answer does not fit, by field; the form stays open.
        AlreadyAnswered, WaitGone, NotFound: as `form`.
    """
    async with store.database.connection() as connection:
        found = await _of_kind(connection, token, "form")
        text = None if skip else _fitting(json.loads(found.spec), values, complete, store.settings.engine.value_limit)
        answered = await waits.settle(connection, Resolution(found, by, text, skipped=skip))
        return await _told(connection, answered)


def checked(spec: Mapping[str, Any], values: Any, *, complete: bool = False) -> dict[str, Any]:
    """The answers as they would be kept.

    Raises:
        AnswerRefused: they do not fit the form, by field.
    """
    if not isinstance(values, Mapping):
        raise AnswerRefused(problems(spec, values))
    answers = normalise(spec, values, complete=complete)
    wrong = problems(spec, answers)
    if wrong:
        raise AnswerRefused(wrong)
    return answers


def _fitting(spec: Mapping[str, Any], values: Any, complete: bool, limit: int) -> str:
    answers = checked(spec, {} if values is None else values, complete=complete)
    try:
        return encoded(answers, limit)[1]
    except ValueError as error:
        raise AnswerRefused({"": f"the answer cannot be kept: {error}"}) from None


async def find_form(store: Store, piece: str) -> str:
    """The token of the one open form that a person means: by its token, a unique ending of it, or a run that has no
    other form open (its id, or a beginning or ending of 4 or more).

    Raises:
        NotFound: no form that waits has it.
        Conflict: several have; the message lists them.
    """
    cleaned = piece.strip().lower()
    if len(cleaned) == 64:
        return cleaned
    found: list[OpenForm] = []
    if len(cleaned) >= 4:
        after = None
        while page := await open_forms(store, limit=INBOX_LIMIT, after=after):
            found += [each for each in page if _means(cleaned, each)]
            after = page[-1].cursor
    if not found:
        raise NotFound(f"no form that waits has {piece!r} as its token or run", hint="weft forms lists them.")
    if len(found) > 1:
        lines = [f"  {each.token}  {each.node}: {each.title}" for each in found[:10]] + ["  …"] * (len(found) > 10)
        raise Conflict(f"several forms wait under {piece!r}:\n" + "\n".join(lines), hint="Give the token of one.")
    return found[0].token


def _means(piece: str, form: OpenForm) -> bool:
    run = str(form.run.run)
    return form.token.endswith(piece) or run.startswith(piece) or run.endswith(piece) or run.replace("-", "") == piece


# --- webhooks ---------------------------------------------------------------------------------------------


async def webhook(store: Store, token: str) -> RunRow:
    """The run whose webhook has this token; nothing is received. Raises as `form` does."""
    async with store.database.connection() as connection:
        found = await _of_kind(connection, token, "webhook")
        return await _row(connection, found.project, found.run)


async def receive(store: Store, token: str, request: Request, *, by: str = "a request") -> Ended:
    """End a webhook with what came to it.

    Raises:
        AnswerRefused: it cannot be stored, or is too large.
        AlreadyAnswered, WaitGone, NotFound: as `form`.
    """
    value = {"body": request.body, "headers": dict(request.headers), "query": dict(request.query)}
    try:
        text = encoded(value, store.settings.engine.value_limit)[1]
    except ValueError as error:
        raise AnswerRefused({"": f"the request cannot be kept: {error}"}) from None
    async with store.database.connection() as connection:
        found = await _of_kind(connection, token, "webhook")
        return await _told(connection, await waits.settle(connection, Resolution(found, by, text)))


# --- timers -----------------------------------------------------------------------------------------------


async def wake(store: Store, run: RunRow, node: str, *, by: str) -> list[Ended]:
    """End what the node waits for now: timers and rests between two tries, in every iteration that waits.

    Raises:
        Conflict: the run has ended, or the node waits for something that has to be answered.
        NotFound: the node waits for nothing.
    """
    async with store.database.connection() as connection:
        if run.ended:
            raise Conflict(f"run {run.run} had already ended: {run.status}", run=str(run.run))
        everything = await waits.of_run(connection, run.project, run.run)
        mine = [each for each in everything if each.node == node]
        if not mine:
            waiting = ", ".join(dict.fromkeys(each.node for each in everything))
            raise NotFound(
                f"the node {node} of run {run.run} waits for nothing",
                hint=f"These wait: {waiting}." if waiting else "Nothing in this run waits.",
            )
        for each in mine:
            if each.kind not in ("timer", "retry"):
                raise Conflict(
                    f"the node {node} waits for {kind_text(each.kind)}, which cannot be woken",
                    hint=_instead(each),
                    run=str(run.run),
                )
        return [await _told(connection, await waits.wake(connection, each, by)) for each in mine]


def kind_text(kind: str) -> str:
    return {
        "form": "an answer to a form",
        "timer": "a timer",
        "webhook": "a request to its webhook",
        "run": "the end of another run",
        "retry": "its next try",
    }[kind]


def _instead(wait: Wait) -> str:
    match wait.kind:
        case "form":
            return f"Answer it: weft answer {wait.token}"
        case "webhook":
            return f"Send it a request: POST /w/{wait.token} of weft serve"
        case _:
            return f"weft why {wait.target} says what that run waits for."


# --- all of them ------------------------------------------------------------------------------------------


async def _of_kind(connection: Connection, token: str, kind: str) -> Wait:
    found = await waits.find(connection, token)
    if found.kind != kind:
        raise NotFound(f"this is the token of a {found.kind}, not of a {kind}", run=str(found.run))
    return found


async def _forms(connection: Connection, found: Sequence[Wait]) -> list[OpenForm]:
    keys = list(dict.fromkeys(RunKey(each.project, each.run) for each in found))
    runs = {row.run: row for row in await listing.rows(connection, keys)}
    return [_form(each, runs[each.run]) for each in found if each.run in runs]


def _form(wait: Wait, run: RunRow) -> OpenForm:
    spec = json.loads(wait.spec)
    return OpenForm(
        wait.token,
        run,
        wait.node,
        tuple(json.loads(wait.frames)),
        spec["title"],
        spec.get("description"),
        tuple(spec["fields"]),
        wait.registered_at,
        wait.due,
    )


async def _row(connection: Connection, project: int, run: UUID) -> RunRow:
    rows = await listing.rows(connection, [RunKey(project, run)])
    if not rows:
        raise NotFound(f"run {run} is gone: it was deleted")
    return rows[0]


async def _told(connection: Connection, answered: Answered) -> Ended:
    project, run, worker, token = answered
    notice = Notice("ready", project) if worker is None else Notice("answered", project, run, worker)
    await notify.publish(connection, [notice])
    return Ended(token, await _row(connection, project, run), worker)


def frames_text(frames: Sequence[int | str]) -> str:
    """`[2]` behind a node's name: which iteration of which loops; empty outside of loops."""
    return to_json(list(frames)) if frames else ""
