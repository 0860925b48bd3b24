"""The shapes of what the API takes and gives, as JSON Schemas; the names are those under which it describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.flow.events import CLASSES
from weft.nodes.fields import KINDS
from weft.service.listing import STATUSES

Schema = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "integer"}
INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
RUN_ID: Final[Schema] = {"type": "string", "format": "uuid"}
STATUS: Final[Schema] = {"enum": list(STATUSES)}
FRAMES: Final[Schema] = {
    "type": "array",
    "items": {"type": ["integer", "string"]},
    "description": "Which iteration of which loops; empty outside of loops.",
}
NODE_VALUES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": "object"},
    "description": "Values by port, by node.",
}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": schema, **more}


def record(optional: Mapping[str, Schema] | None = None, **required: Schema) -> Schema:
    """An object that has these keys, maybe the optional ones, and no others."""
    properties = {**required, **(optional or {})}
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needs, "additionalProperties": False}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_RUN: Final[dict[str, Schema]] = {
    "run": RUN_ID,
    "status": STATUS,
    "started": INSTANT,
    "ended": or_null(INSTANT),
    "entry": TEXT,
    "project": TEXT,
    "project_name": TEXT,
    "program": {"type": "string", "description": "The hash of the program that it was started with."},
    "reason": or_null({"type": "string", "description": "Why it was cancelled."}),
    "error": or_null({"type": "string", "description": "Why it failed."}),
    "tags": list_of(TEXT),
}

_FORM: Final[dict[str, Schema]] = {
    "token": or_null({"type": "string", "description": "Ends the form; null for who may not answer."}),
    "run": RUN_ID,
    "project": TEXT,
    "project_name": TEXT,
    "entry": TEXT,
    "node": TEXT,
    "frames": FRAMES,
    "title": TEXT,
    "description": or_null(TEXT),
    "fields": list_of(ref("Field")),
    "since": INSTANT,
    "due": or_null(INSTANT),
    "path": or_null({"type": "string", "description": "The page of the form, below the address of weft serve."}),
}

COMPONENTS: Final[dict[str, Schema]] = {
    "Run": record(**_RUN),
    "RunAndWhy": record(**_RUN, why=ref("Why")),
    "Why": record(
        run=RUN_ID,
        status=STATUS,
        reason=or_null(TEXT),
        error=or_null(TEXT),
        worker=or_null({"type": "integer", "description": "The worker that drives it."}),
        workers=list_of(NUMBER, description="The workers that are alive and could."),
        deadline=or_null(INSTANT),
        running=list_of(record(node=TEXT, frames=FRAMES)),
        waits=list_of(ref("Wait")),
        below=list_of(RUN_ID, description="The live runs below it."),
    ),
    "Wait": record(
        run=RUN_ID,
        node=TEXT,
        frames=FRAMES,
        kind={"enum": ["form", "timer", "webhook", "run", "retry"]},
        title=or_null(TEXT),
        token=or_null(TEXT),
        path=or_null(TEXT),
        since=INSTANT,
        due=or_null(INSTANT),
        target=or_null(RUN_ID),
    ),
    "Field": {
        "type": "object",
        "properties": {"kind": {"enum": list(KINDS)}, "key": TEXT, "label": TEXT},
        "required": ["kind", "key"],
    },
    "Form": record(**_FORM),
    "FormAndSchema": record(
        **_FORM, schema={"type": "object", "description": "The JSON Schema of a right answer."}
    ),
    "Event": {
        **record(
            cursor=TEXT,
            seq=or_null({"type": "integer", "description": "Its number in the run; null: it came after the end."}),
            at=INSTANT,
            kind={"enum": list(CLASSES)},
        ),
        "additionalProperties": True,
    },
    "Events": record(
        events=list_of(ref("Event")),
        cursor={"type": "string", "description": "Behind the last event that was looked at."},
        ended={"type": "boolean", "description": "The run has ended, and nothing comes behind this."},
    ),
    "Runs": record(
        runs=list_of(ref("Run")),
        next_offset=or_null({"type": "integer", "description": "Null: this is the last page."}),
    ),
    "Forms": record(
        forms=list_of(ref("Form")),
        cursor=or_null({"type": "string", "description": "Null: this is the last page."}),
    ),
    "Start": record(
        {
            "project": {"type": "string", "description": "Its id or name; may be left out where one is served."},
            "program": {
                "type": "string",
                "description": "The path of a .weft file from the project's folder; else its main program.",
            },
            "inputs": {**NODE_VALUES, "description": "Values by port, by node, each as if it were written there."},
            "tags": list_of(TEXT),
            "deadline": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds until the run is ended."},
            "targets": list_of(TEXT, description="Only these nodes and what feeds them."),
            "before": list_of(TEXT, description="What these nodes need, without them."),
            "from": {**NODE_VALUES, "description": "Start at these nodes with these input values."},
            "emit": {**NODE_VALUES, "description": "These nodes do not run; these are their emissions."},
        }
    ),
    "Started": record(run=RUN_ID, status={"const": "queued"}),
    "Stop": record({"reason": {"type": "string", "maxLength": 500}}),
    "StopTag": record({"project": TEXT, "reason": {"type": "string", "maxLength": 500}}),
    "Stopped": record(stopped=list_of(RUN_ID), failed=list_of(RUN_ID)),
    "Wake": record(node=TEXT),
    "Woken": record(run=RUN_ID, status=STATUS, woken=NUMBER),
    "Answer": record(values={"type": "object", "description": "The answers by key, as the form's schema says."}),
    "Answered": record(run=RUN_ID, status=STATUS),
    "Received": record(received={"const": True}, run=RUN_ID),
    "Ready": record(ready={"const": True}),
    "Alive": record(alive={"const": True}),
    "Error": record(
        error=record(
            {
                "hint": TEXT,
                "fields": {
                    "type": "object",
                    "additionalProperties": TEXT,
                    "description": "What is wrong with an answer, by the key of the field.",
                },
                "at": INSTANT,
                "by": TEXT,
                "timed_out": {"type": "boolean"},
                "skipped": {"type": "boolean"},
                "value": {"description": "What was answered before."},
                "reason": TEXT,
                "status": or_null(STATUS),
                "cause": or_null({"type": "object"}),
            },
            code=TEXT,
            message=TEXT,
        )
    ),
}
