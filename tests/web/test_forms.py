"""Forms as pages: shown, answered, refused, too late."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import httpx
import pytest

from tests.cli.weft_process import Weft
from tests.web.house import ASK, TEXT, House, open_house
from tests.web.page import Page, Pairs

EVERY_KIND = """\
data = JsonObject { price: 3  who: "<b>Ada</b>" }
draft = Give { value: "\\nline one\\n  line two & more" }
line = Give { value: "\\" onfocus=alert(1) x=\\"" }
names = List { first: "ann" second: "bob" }
ask = HumanQuery {
  title: "All <kinds>"
  fields: [
    { "kind": "display", "key": "shown", "label": "What it is about" },
    { "kind": "approve_reject", "key": "ok", "approveLabel": "Send it", "rejectLabel": "Drop it" },
    { "kind": "select", "key": "tone", "options": ["warm", "cold"] },
    { "kind": "select", "key": "month", "options": ["1", "2", "3", "4", "5", "6", "7", "8", "9"] },
    { "kind": "multi_select", "key": "days", "options": ["mon", "tue", "wed"] },
    { "kind": "select_input", "key": "who" },
    { "kind": "multi_select_input", "key": "others" },
    { "kind": "text_input", "key": "note", "placeholder": "a note" },
    { "kind": "textarea", "key": "more" },
    { "kind": "editable_text_input", "key": "subject" },
    { "kind": "editable_textarea", "key": "body" }
  ]
  shown: data.value
  who: names.value
  others: names.value
  subject: line.value
  body: draft.value
}
"""

SEVERAL_VERDICTS = """\
ask = HumanQuery {
  title: "Two"
  fields: [{ "kind": "approve_reject", "key": "one" }, { "kind": "approve_reject", "key": "two" }]
}
"""

LATE = """\
ask = HumanQuery { title: "Soon"  timeoutSecs: 0.1  fields: [{ "kind": "text_input", "key": "text" }] }
show = Show { data: ask.timedOut }
"""


async def post(house: House, path: str, pairs: Pairs, **headers: str) -> httpx.Response:
    """As a browser posts a form of our own page."""
    sent = {"content-type": "application/x-www-form-urlencoded", "origin": house.address, **headers}
    return await house.client.post(path, content=urlencode(pairs), headers=sent)


async def page(house: House, path: str, status: int = 200) -> Page:
    answer = await house.client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


async def answers(house: House, run: str) -> dict[str, object]:
    await house.ended(run)
    [found] = [each["value"] for each in await house.events(run) if each["kind"] == "suspension_resolved"]
    assert isinstance(found, dict)
    return found


async def test_reading_answers_nothing(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(ASK)
        before = await house.events(run)
        for method in ("GET", "HEAD", "GET"):
            answer = await house.client.request(method, path)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert bool(answer.content) == (method == "GET")
        prefetch = await house.client.get(f"{path}?ok=approve&note=x", headers={"purpose": "prefetch"})
        assert prefetch.status_code == 200
        assert await house.events(run) == before
        assert (await house.run(run))["status"] == "waiting"


async def test_a_page_can_be_read_and_filled_in_by_anybody(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        _, path = await house.parked(EVERY_KIND)
        shown = await page(house, path)
    assert shown.language == "en" and shown.title == shown.heading == "All <kinds>"
    asked = [each for each in shown.controls if each.tag != "button"]
    assert all(shown.labels.get(each.attributes["id"] or "") for each in asked), "each has a label"
    names = [each.attributes["id"] for each in asked]
    assert len(names) == len(set(names))
    assert {"Ok", "Tone", "Days", "Who", "Others"} == set(shown.legends), "what belongs together has a name"
    assert shown.texts["shown"] == "What it is about"
    first, *buttons = [each for each in shown.controls if each.tag == "button"]
    assert {"disabled", "hidden"} <= first.attributes.keys(), "the Enter key approves nothing"
    assert [each.attributes.get("value") for each in buttons] == ["approve", "reject", "1"]


async def test_every_kind_of_field_is_answered_by_its_page(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(EVERY_KIND)
        shown = await page(house, path)
        filled: dict[str, str | list[str]] = {
            "tone": "warm", "month": "9", "days": ["mon", "wed"], "who": "bob", "note": "ü & <i>", "more": "a\nb",
        }  # fmt: skip
        answer = await post(house, path, shown.sent(shown.control("ok", "approve"), filled))
        assert answer.status_code == 200 and "The answer was taken" in answer.text
        assert await answers(house, run) == {
            "ok": True,
            "tone": "warm",
            "month": "9",
            "days": ["mon", "wed"],
            "who": "bob",
            "others": [],
            "note": "ü & <i>",
            "more": "a\nb",
            "subject": '" onfocus=alert(1) x="',
            "body": "\nline one\n  line two & more",
        }


async def test_reject_and_skip(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(ASK)
        shown = await page(house, path)
        assert (await post(house, path, shown.sent(shown.control("ok", "reject"), {}))).status_code == 200
        assert await answers(house, run) == {"ok": False, "note": ""}

        run, path = await house.parked(ASK)
        shown = await page(house, path)
        pairs = shown.sent(shown.control("weft.skip"), {})
        assert pairs == [("weft.skip", "1")]
        assert "It was left out" in (await post(house, path, pairs)).text
        await house.ended(run)
        assert "node_skipped" in [each["kind"] for each in await house.events(run)]
        assert (await page(house, path, 409)).title == "Already skipped"


async def test_several_verdicts_are_given_together(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(SEVERAL_VERDICTS)
        shown = await page(house, path)
        send = next(each for each in shown.controls if each.attributes.get("class") == "approve")
        missing = await post(house, path, shown.sent(send, {"one": "approve"}))
        assert missing.status_code == 422
        again = Page(missing.text)
        assert "checked" in again.control("one", "approve").attributes, "what was chosen stays chosen"
        assert again.texts["two-error"].strip() == "approve or reject"
        send = next(each for each in again.controls if each.attributes.get("class") == "approve")
        assert (await post(house, path, again.sent(send, {"two": "reject"}))).status_code == 200
        assert await answers(house, run) == {"one": True, "two": False}


async def test_what_does_not_fit_is_said_beside_its_field_and_the_form_stays_open(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(EVERY_KIND)
        shown = await page(house, path)
        filled: dict[str, str | list[str]] = {"note": "keep me", "days": ["tue"]}
        refused = await post(house, path, [*shown.sent(shown.control("ok", "approve"), filled), ("other", "x")])
        assert refused.status_code == 422
        again = Page(refused.text)
        assert again.title.startswith("Please look again")
        tied = {name for attributes, name in again.described if attributes.get("aria-invalid") == "true"}
        assert tied == {"tone-error", "month-error", "who-error"}
        assert "choose one of “warm”, “cold”" in again.texts["tone-error"]
        assert again.control("note").attributes["value"] == "keep me"
        assert "checked" in again.control("days", "tue").attributes
        assert "no field `other`" in refused.text
        assert (await house.run(run))["status"] == "waiting"


async def test_fault_b30_of_answers_at_once_the_first_counts_and_the_others_are_told(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        several = await asyncio.gather(*(post(house, path, [("text", f"answer {n}")]) for n in range(10)))
        codes = [each.status_code for each in several]
        assert sorted(codes) == [200] + [409] * 9
        taken = await answers(house, run)
        assert taken == {"text": f"answer {codes.index(200)}"}
        late = await post(house, path, [("text", "late")])
        for each in (late, *(each for each in several if each.status_code == 409)):
            assert "was answered at" in each.text and "UTC by the page of the form" in each.text
            assert str(taken["text"]) in each.text
        kinds = [each["kind"] for each in await house.events(run)]
        assert kinds.count("suspension_resolved") == kinds.count("node_resumed") == 1


async def test_a_dead_form_says_who_ended_it_when_and_why(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        stopped = await house.client.post(f"/api/v1/runs/{run}/stop", json={"reason": "the <order> was withdrawn"})
        assert stopped.json() == {"stopped": [run], "failed": []}
        for method in ("GET", "POST"):
            answer = await (post(house, path, [("text", "x")]) if method == "POST" else house.client.get(path))
            assert answer.status_code == 410
            assert "UTC: Cancelled by user: the &lt;order&gt; was withdrawn" in answer.text
            assert Page(answer.text).title == "Nothing waits for this any more"


async def test_a_form_that_timed_out_says_so(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await house.start(LATE)
        await house.ended(run)
        [token] = [each["waits"][0]["token"] for each in await house.events(run) if "waits" in each]
        assert (await page(house, f"/f/{token}", 409)).title == "Timed out"


@pytest.mark.parametrize("token", ["x", "0" * 64, "%00" * 64, "..%2f..%2fetc%2fpasswd", "%ff%fe"])
async def test_what_is_no_form_is_not_found(weft: Weft, token: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        assert (await page(house, f"/f/{token}", 404)).title == "Not found"
        assert (await page(house, f"/f/{token}/more", 404)).title == "Not found"


async def test_what_cannot_be_an_answer_is_refused_and_nothing_is_lost(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        fields = {"content-type": "application/x-www-form-urlencoded"}
        told = {
            "DELETE": await house.client.delete(path),
            "PUT": await house.client.put(path, content="text=x", headers=fields),
            "no type": await house.client.post(path, content="text=x"),
            "JSON": await house.client.post(path, json={"text": "x"}),
            "a file": await house.client.post(path, files={"text": b"x"}),
            "not UTF-8": await house.client.post(path, content="text=%ff%fe", headers=fields),
            "not ASCII": await house.client.post(path, content="text=ü".encode(), headers=fields),
            "NUL": await house.client.post(path, content="text=a%00b", headers=fields),
            "twice": await house.client.post(path, content="text=a&text=b", headers=fields),
            "many": await house.client.post(path, content="&".join(["a=1"] * 2000), headers=fields),
            "large": await house.client.post(path, content="text=" + "x" * 1_100_000, headers=fields),
            "packed": await house.client.post(path, content=b"x", headers={**fields, "content-encoding": "gzip"}),
        }
        assert {what: answer.status_code for what, answer in told.items()} == {
            "DELETE": 405,
            "PUT": 405,
            "no type": 415,
            "JSON": 415,
            "a file": 415,
            "not UTF-8": 400,
            "not ASCII": 400,
            "NUL": 422,
            "twice": 422,
            "many": 400,
            "large": 413,
            "packed": 415,
        }
        assert told["PUT"].headers["allow"] == "GET, HEAD, POST"
        for answer in told.values():
            assert answer.headers["content-type"].startswith("text/html")
        assert (await house.run(run))["status"] == "waiting"
        assert (await post(house, path, [("text", "good")])).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
async def test_a_page_of_another_site_answers_nothing(weft: Weft, headers: dict[str, str]) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        fields = {"content-type": "application/x-www-form-urlencoded"}
        answer = await house.client.post(path, content="text=forged", headers={**fields, **headers})
        assert answer.status_code == 403
        assert (await house.run(run))["status"] == "waiting"
        assert (await house.client.get(path, headers=headers)).status_code == 200, "a link may lead here from anywhere"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil"])
async def test_a_name_that_was_bent_to_this_machine_is_refused(weft: Weft, host: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        for path in ("/", "/f/x", "/api/v1/runs", "/openapi.json", "/healthz"):
            assert (await house.client.get(path, headers={"host": host})).status_code == 421
        for name in ("localhost:80", "127.0.0.1", "[::1]:8080", "127.9.9.9"):
            assert (await house.client.get("/", headers={"host": name})).status_code == 200


async def test_the_stylesheet_and_the_front_page(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        style = await house.client.get("/static/style.css")
        assert style.headers["content-type"].startswith("text/css") and "button" in style.text
        for path in ("/static/", "/static/../pages.py", "/static/%2e%2e/pages.py", "//static/style.css"):
            assert (await house.client.get(path)).status_code == 404
        assert (await page(house, "/")).heading == "weft"


async def test_who_guesses_tokens_is_not_looked_for_for_ever(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        _, path = await house.parked(TEXT)
        token = path.removeprefix("/f/")
        codes = [(await house.client.get(f"/f/{token[:32]}{n:032x}")).status_code for n in range(25)]
        assert codes == [404] * 20 + [429] * 5
        assert (await house.client.get(path)).status_code == 200, "the form itself can be found"
        assert (await post(house, path, [("text", "x")])).status_code == 200
