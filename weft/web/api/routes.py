"""The table of the API: every endpoint with what it takes, gives and needs."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from weft.service.listing import STATUSES
from weft.web.api import events, forms, health, runs, webhooks
from weft.web.api.openapi import description
from weft.web.api.schemas import INSTANT, TEXT, list_of, ref
from weft.web.api.table import Call, Endpoint, Parameter, Schema, routes_of
from weft.web.reading import JSON, URLENCODED

PREFIXES: Final = ("/api", "/w", "/openapi.json", "/healthz", "/readyz")
"""Below which all of it stands."""


def _json(name: str) -> dict[str, Schema]:
    return {JSON: ref(name)}


def _whole(most: int, default: int, least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


_PROJECT = Parameter("project", TEXT, "Only of this project, by id or name.")
_STATUS = Parameter("status", list_of({"enum": list(STATUSES)}), "Only of one of these.")
_TAG = Parameter("tag", list_of(TEXT), "Only with every one of these.")
_SINCE = Parameter("since", INSTANT, "Only started since.")
_REACHED = Parameter("node", TEXT, "Only where this node was reached.")
_LIMIT = Parameter("limit", _whole(runs.MOST, runs.DEFAULT, 1), "At most so many.")
_OFFSET = Parameter("offset", _whole(2**31 - 1 - runs.MOST, 0), "Leave out the newest so many.")
_NODES = Parameter("node", list_of(TEXT), "Only of one of these nodes.")
_KINDS = Parameter("kind", list_of(TEXT), "Only of one of these kinds.")
_AFTER = Parameter("after", TEXT, "Only behind this cursor.")
_MANY = Parameter("limit", _whole(events.MOST, events.DEFAULT, 1), "At most so many.")
_WAIT = Parameter("wait", _whole(events.LONGEST_WAIT, 0), "Seconds to wait for the first of them.")
_LAST = Parameter("Last-Event-ID", TEXT, "Of server-sent events: only behind this cursor.")


async def _describe(call: Call) -> Response:
    return JSONResponse(description(ENDPOINTS))


_ANY: Final[Schema] = {}

ENDPOINTS: Final = (
    Endpoint(
        "GET", "/api/v1/forms", "listForms", "Forms that wait, the longest waiting first.",
        forms.list_forms, "read", {200: _json("Forms")},
        (_PROJECT, _LIMIT, _AFTER),
    ),
    Endpoint(
        "GET", "/api/v1/forms/{token}", "getForm", "A form that waits, and the schema of its answer.",
        forms.one_form, "read", {200: _json("FormAndSchema")},
        errors=(409, 410, 429),
    ),
    Endpoint(
        "POST", "/api/v1/forms/{token}/answer", "answerForm", "Answer a form. The first answer counts.",
        forms.answer_form, "answer", {200: _json("Answered")},
        bodies=_json("Answer"), errors=(409, 410, 429),
    ),
    Endpoint(
        "POST", "/api/v1/forms/{token}/skip", "skipForm", "Leave a form out: its node closes all its ports.",
        forms.skip_form, "answer", {200: _json("Answered")},
        errors=(409, 410, 429),
    ),
    Endpoint(
        "GET", "/api/v1/runs", "listRuns", "Runs, newest first.",
        runs.list_runs, "read", {200: _json("Runs")},
        (_PROJECT, _STATUS, _TAG, _SINCE, _REACHED, _LIMIT, _OFFSET),
    ),
    Endpoint(
        "POST", "/api/v1/runs", "startRun", "Start a run of a program of a project that this weft serve serves.",
        runs.start_run, "run", {201: _json("Started")},
        bodies=_json("Start"),
    ),
    Endpoint(
        "GET", "/api/v1/runs/{run}", "getRun", "A run, and why it does not go on.",
        runs.one_run, "read", {200: _json("RunAndWhy")},
    ),
    Endpoint(
        "POST", "/api/v1/runs/{run}/stop", "stopRun", "Cancel a run and all below it.",
        runs.stop_run, "stop", {200: _json("Stopped")},
        bodies=_json("Stop"), body_may_be_empty=True, errors=(409,),
    ),
    Endpoint(
        "POST", "/api/v1/runs/{run}/wake", "wakeRun", "End a node's timer, or its rest between two tries, now.",
        runs.wake_node, "run", {200: _json("Woken")},
        bodies=_json("Wake"), errors=(409,),
    ),
    Endpoint(
        "GET", "/api/v1/runs/{run}/events", "listEvents",
        "A run's events: a page, a page that is waited for, or a stream until its end.",
        events.run_events, "read", {200: {**_json("Events"), "text/event-stream": TEXT}, 204: {}},
        (_KINDS, _NODES, _AFTER, _MANY, _WAIT), (_LAST,),
    ),
    Endpoint(
        "GET", "/api/v1/runs/{run}/logs", "listLogs", "The lines, costs and failures of a run, and its end.",
        events.run_logs, "read", {200: _json("Events")},
        (_NODES, _AFTER, _MANY, _WAIT),
    ),
    Endpoint(
        "GET", "/api/v1/tags/{tag}/runs", "listRunsOfTag", "Runs that carry a tag, newest first.",
        runs.runs_of_tag, "read", {200: _json("Runs")},
        (_PROJECT, _STATUS, _SINCE, _REACHED, _LIMIT, _OFFSET),
    ),
    Endpoint(
        "POST", "/api/v1/tags/{tag}/stop", "stopTag", "Cancel the live runs of a project that carry a tag now.",
        runs.stop_tag, "stop", {200: _json("Stopped")},
        bodies=_json("StopTag"), body_may_be_empty=True,
    ),
    Endpoint(
        "POST", "/w/{token}", "receive", "Send a request to the webhook that a run waits for.",
        webhooks.receive, None, {202: _json("Received")},
        query=None, bodies={JSON: _ANY, URLENCODED: {"type": "object"}, "text/plain": TEXT},
        body_may_be_empty=True, errors=(409, 410, 429),
    ),
    Endpoint(
        "GET", "/openapi.json", "describe", "This description.",
        _describe, None, {200: {JSON: {"type": "object"}}}, query=None,
    ),
    Endpoint(
        "GET", "/healthz", "healthz", "Whether the process lives.",
        health.healthz, None, {200: _json("Alive")}, query=None,
    ),
    Endpoint(
        "GET", "/readyz", "readyz", "Whether it reaches its database and takes requests.",
        health.readyz, None, {200: _json("Ready")}, query=None,
    ),
)  # fmt: skip


def routes() -> list[Route]:
    return routes_of(ENDPOINTS)
