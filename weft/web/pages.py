"""The pages that people open: a form that waits, what became of it, and what went wrong.

Showing one answers nothing: only the POST of its button does, so that whoever fetches an address beforehand (a chat
that shows previews, a scanner of links) changes nothing. Works without JavaScript, of which there is none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from weft.errors import AnswerRefused
from weft.nodes.fields import KINDS
from weft.rules.waits import instant_text
from weft.service import waits
from weft.service.waits import OpenForm, frames_text
from weft.web.door import door_of
from weft.web.reading import FORM_LIMIT, URLENCODED, Fields, body, content_type, parsed_fields
from weft.web.refusals import Refusal, Refused

SKIP: Final = "weft.skip"
"""The name of the skip button; no field has a dot in its key."""

BY: Final = "the page of the form"
FEW_OPTIONS: Final = 8
"""Up to so many stand there side by side; more are in a list that opens."""

_TITLES: Final = {
    400: "This cannot be read",
    403: "Refused",
    404: "Not found",
    405: "Not like this",
    409: "Already answered",
    410: "Nothing waits for this any more",
    413: "Too large",
    415: "Not like this",
    422: "The answer does not fit",
    503: "Not now",
}


def routes() -> list[Route]:
    return [
        Route("/", _front, methods=["GET"]),
        Route("/f/{token}", _form, methods=["GET", "POST"]),
        Route("/static/style.css", _style, methods=["GET"]),
    ]


def say(refusal: Refusal) -> Response:
    """An error as a page."""
    more = dict(refusal.more)
    value = more.pop("value", None)
    answers = [(key, _text(each)) for key, each in value.items()] if isinstance(value, Mapping) else []
    title = _TITLES.get(refusal.status, "Something went wrong")
    if more.get("timed_out"):
        title = "Timed out"
    elif more.get("skipped"):
        title = "Already skipped"
    page = _page("message.html", title=title, message=refusal.message, hint=refusal.hint, answers=answers)
    return HTMLResponse(page, refusal.status, dict(refusal.headers))


async def _front(request: Request) -> Response:
    return HTMLResponse(_page("front.html", title="weft"))


async def _style(request: Request) -> Response:
    return Response(_stylesheet(), media_type="text/css", headers={"cache-control": "max-age=3600"})


async def _form(request: Request) -> Response:
    token: str = request.path_params["token"]
    door = door_of(request)
    if request.method != "POST":
        form = await door.late.ask(token, lambda: waits.form(door.store, token))
        return HTMLResponse(_shown(form, {}, {}))
    kind = content_type(request)[0]
    # Asked first, so that nobody sends anything large to where nothing waits.
    form = await door.late.ask(token, lambda: waits.form(door.store, token))
    if kind != URLENCODED:
        raise Refused(415, "not-fields", "a form is answered with form fields", f"Send them as {URLENCODED}.")
    given: Fields = parsed_fields(await body(request, FORM_LIMIT))
    skip = given.pop(SKIP, None) is not None
    try:
        await door.late.ask(
            token, lambda: waits.answer(door.store, token, given, by=BY, skip=skip, complete=not skip)
        )
    except AnswerRefused as error:
        return HTMLResponse(_shown(form, given, error.fields), 422)
    done = "It was left out." if skip else "The answer was taken."
    return HTMLResponse(_page("message.html", title="Thank you", message=done, hint=None, answers=[]))


# --- what a page shows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A field as the template needs it. `widget` says how it is asked; `chosen` are the texts that it holds already."""

    key: str
    label: str
    widget: str
    error: str | None
    chosen: tuple[str, ...]
    options: tuple[str, ...] = ()
    placeholder: str = ""
    approve: str = "Approve"
    reject: str = "Reject"

    @property
    def text(self) -> str:
        return self.chosen[0] if self.chosen else ""


def _shown(form: OpenForm, given: Fields, wrong: Mapping[str, str]) -> str:
    verdicts = sum(KINDS[field["kind"]].asks == "verdict" for field in form.fields)
    fields = [_field(field, given, wrong, alone=verdicts == 1) for field in form.fields]
    keys = {each.key for each in fields}
    buttons = [each for each in fields if each.widget == "buttons"]
    return _page(
        "form.html",
        title=form.title,
        form=form,
        fields=[each for each in fields if each.widget != "buttons"],
        buttons=buttons[0] if buttons else None,
        wrong=[reason if not key else f"{key}: {reason}" for key, reason in wrong.items() if key not in keys],
        refused=bool(wrong),
        where=f"{form.run.project_name} · {form.node}{frames_text(form.frames)}",
        since=instant_text(form.since),
        due=None if form.due is None else instant_text(form.due),
        skip=SKIP,
    )


def _field(field: Mapping[str, Any], given: Fields, wrong: Mapping[str, str], *, alone: bool) -> Shown:
    key, kind = field["key"], field["kind"]
    told = given.get(key)
    chosen = (told,) if isinstance(told, str) else tuple(told or ())
    if told is None and "value" in field:
        chosen = (_text(field["value"]),)
    label = field.get("label") or key.replace("_", " ").strip().capitalize() or key
    return Shown(
        key,
        label,
        _widget(kind, field, chosen, alone=alone),
        wrong.get(key),
        chosen,
        tuple(field.get("options", ())),
        field.get("placeholder", ""),
        field.get("approveLabel", "Approve"),
        field.get("rejectLabel", "Reject"),
    )


def _widget(kind: str, field: Mapping[str, Any], chosen: tuple[str, ...], *, alone: bool) -> str:
    match KINDS[kind].asks:
        case None:
            return "shown"
        case "verdict":
            return "buttons" if alone else "verdict"
        case "option":
            return "radios" if len(field["options"]) <= FEW_OPTIONS else "list"
        case "options":
            return "boxes"
        case "text":
            # A line that holds a line end would lose it in a browser.
            return "area" if kind.endswith("textarea") or any("\n" in each for each in chosen) else "line"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("weft.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )


def _page(template: str, **values: Any) -> str:
    return _templates().get_template(template).render(**values)


@cache
def _stylesheet() -> bytes:
    from importlib.resources import files

    return (files("weft.web") / "static" / "style.css").read_bytes()
