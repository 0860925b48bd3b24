"""Waits in words: what is waited for, since when, and how to end it from the command line."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from weft import clock
from weft.cli.lines import iso, one_line
from weft.nodes.fields import KINDS
from weft.nodes.waits import spoken
from weft.service.waits import frames_text
from weft.service.why import Waiting

_LONGEST_CHOICE = 60


class Fields(Protocol):
    """A form, open in the store or as a run waits for it."""

    @property
    def token(self) -> str: ...
    @property
    def fields(self) -> tuple[dict[str, Any], ...]: ...


def user() -> str:
    """By whom an answer is given on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "the command line"


def answer_line(form: Fields) -> str:
    """The command that answers a form; what need not be given stands in brackets."""
    return answer_command(form.token, form.fields)


def answer_command(token: str, fields: tuple[Mapping[str, Any], ...] | list[Mapping[str, Any]]) -> str:
    parts = [_part(field) for field in fields if KINDS[field["kind"]].asks is not None]
    return " ".join(["weft", "answer", token, *parts])


def _part(field: Mapping[str, Any]) -> str:
    key = field["key"]
    match KINDS[field["kind"]].asks:
        case "verdict":
            value = "approve|reject"
        case "option":
            value = _choice(field["options"], "|")
        case "options":
            value = _choice(field["options"], ",")
        case _:
            value = "…"
    return f"[{key}={value}]" if "value" in field else f"{key}={value}"


def _choice(options: list[str], between: str) -> str:
    text = between.join(options)
    return text if len(text) <= _LONGEST_CHOICE and all(each == shlex.quote(each) for each in options) else "…"


def named(waiting: Waiting) -> str:
    return f"{one_line(waiting.node)}{frames_text(waiting.frames)}"


def what(waiting: Waiting) -> str:
    """As in: … waits for …"""
    match waiting.kind:
        case "form":
            return f"the form “{one_line(waiting.title or '')}”"
        case "timer":
            return "a timer"
        case "webhook":
            return "a request to its webhook"
        case "run":
            return f"the end of run {waiting.target}"
        case "retry":
            return f"its next try (try {waiting.attempt} failed)"


def due_text(due: datetime) -> str:
    """An instant, and how far off it is."""
    left = due - clock.now()
    seconds = round(left.total_seconds())
    return f"{iso(due)} (in {spoken(left)})" if seconds >= 60 else iso(due)


def waits_text(waiting: Waiting) -> str:
    """What is waited for and until when, on one line."""
    until = "" if waiting.due is None else f" until {due_text(waiting.due)}"
    return f"{named(waiting)} waits for {what(waiting)}{until}"


def page(path: str, address: str | None) -> str:
    """Where something is reached over HTTP: its whole address, if a weft serve is known to be open."""
    return f"{path} of weft serve" if address is None else f"{address}{path}"


def how_to_end(waiting: Waiting, address: str | None) -> str:
    """What ends a wait that time alone does not end, or that need not wait so long. `address` as for `page`."""
    match waiting.kind:
        case "form":
            command = answer_command(waiting.token, waiting.spec["fields"])
            return f"{command}, or {page(f'/f/{waiting.token}', address)}"
        case "webhook":
            return f"POST {page(f'/w/{waiting.token}', address)}"
        case "run":
            return f"weft why {waiting.target}"
        case _:
            return f"weft wake {waiting.run} {shlex.quote(waiting.node)}"
