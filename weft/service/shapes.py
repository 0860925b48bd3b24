"""Runs, events, forms and waits as JSON, the same for the command line and the HTTP API. Pure.

An instant is ISO 8601 in UTC, ids are whole.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from weft.service.listing import RunRow, StoredEvent
from weft.service.waits import OpenForm
from weft.service.why import Waiting, Why


def iso(at: datetime) -> str:
    """To the millisecond, with `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _maybe(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


def run_json(row: RunRow) -> dict[str, Any]:
    return {
        "run": str(row.run),
        "status": row.status,
        "started": iso(row.started_at),
        "ended": _maybe(row.ended_at),
        "entry": row.entry,
        "project": row.project_key,
        "project_name": row.project_name,
        "program": row.program,
        "reason": row.reason,
        "error": row.error,
        "tags": list(row.tags),
    }


def event_json(stored: StoredEvent) -> dict[str, Any]:
    """The event with its number in the run (null: it came after the end) and the instant of its commit."""
    return {"seq": stored.seq, "at": iso(stored.at), **stored.event}


def form_json(form: OpenForm) -> dict[str, Any]:
    return {
        "token": form.token,
        "run": str(form.run.run),
        "project": form.run.project_key,
        "project_name": form.run.project_name,
        "entry": form.run.entry,
        "node": form.node,
        "frames": list(form.frames),
        "title": form.title,
        "description": form.description,
        "fields": list(form.fields),
        "since": iso(form.since),
        "due": _maybe(form.due),
        "path": form.path,
    }


def why_json(stands: Why) -> dict[str, Any]:
    return {
        "run": str(stands.run.run),
        "status": stands.run.status,
        "reason": stands.run.reason,
        "error": stands.run.error,
        "worker": stands.here.worker,
        "workers": list(stands.workers),
        "deadline": _maybe(stands.here.deadline),
        "running": [{"node": node, "frames": list(frames)} for node, frames in stands.running],
        "waits": [wait_json(each) for each in stands.waits],
        "below": [str(each.run) for each in stands.below],
    }


def wait_json(each: Waiting) -> dict[str, Any]:
    return {
        "run": str(each.run),
        "node": each.node,
        "frames": list(each.frames),
        "kind": each.kind,
        "title": each.title,
        "token": each.token,
        "path": each.path,
        "since": iso(each.since),
        "due": _maybe(each.due),
        "target": None if each.target is None else str(each.target),
    }
