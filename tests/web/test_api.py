"""The JSON API: forms, runs, tags, waking and stopping."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.cli.weft_process import Weft
from tests.web.house import ASK, NAP, TEXT, House, error, open_house

NEWEST = """\
sender = Give { value: "49151@s.whatsapp.net" }
claim = TagRun { sender: sender.value }
stop = StopTagged { _should_flow: claim.done  sender: sender.value }
draft = Wait { _should_flow: stop.done  seconds: 0.3 }
answer = Show { data: draft.wokeAt }
"""

TWO = """\
one = HumanQuery { title: "Same"  fields: [{ "kind": "text_input", "key": "text" }] }
two = HumanQuery { title: "Same"  fields: [{ "kind": "text_input", "key": "text" }] }
first = Show { data: one.text }
second = Show { data: two.text }
"""


async def test_a_form_is_listed_shown_answered_and_told_of(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(ASK)
        token = path.removeprefix("/f/")
        [listed] = (await house.client.get("/api/v1/forms")).json()["forms"]
        assert (listed["token"], listed["run"], listed["project"], listed["path"]) == (token, run, "demo-id", path)
        one = (await house.client.get(f"/api/v1/forms/{token}")).json()
        assert one["schema"]["required"] == ["ok", "note"]

        wrong = await house.client.post(f"/api/v1/forms/{token}/answer", json={"values": {"ok": "maybe", "nota": 1}})
        assert wrong.status_code == 422
        assert error(wrong)["fields"].keys() == {"ok", "note", "nota"}
        given = {"values": {"ok": True, "note": "fine"}}
        right = await house.client.post(f"/api/v1/forms/{token}/answer", json=given)
        assert right.status_code == 200 and right.json()["run"] == run
        again = await house.client.post(f"/api/v1/forms/{token}/answer", json=given)
        assert again.status_code == 409
        told = error(again)
        assert (told["code"], told["by"], told["value"]) == ("already-answered", "the API", given["values"])
        assert await house.shown(run) == ["fine"]
        assert (await house.client.get("/api/v1/forms")).json() == {"forms": [], "cursor": None}


async def test_pages_of_forms_hold_each_once(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        runs = [(await house.parked(TEXT))[0] for _ in range(5)]
        seen: list[str] = []
        cursor, pages = "", 0
        while True:
            page = (await house.client.get(f"/api/v1/forms?limit=2{cursor}")).json()
            seen += [each["run"] for each in page["forms"]]
            pages += 1
            if page["cursor"] is None:
                break
            assert not any(each["token"] in page["cursor"] for each in page["forms"])
            cursor = f"&after={page['cursor']}"
        assert (seen, pages) == (runs, 3)
        assert (await house.client.get("/api/v1/forms?project=nobody")).status_code == 404
        for bad in ("after=x", "after=1-2", f"after={'9' * 18}-{'a' * 48}", "limit=x", "limit=-1", "limit=501"):
            assert (await house.client.get(f"/api/v1/forms?{bad}")).status_code == 422, bad


async def test_skipping_over_the_api(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        at = f"/api/v1/forms/{path.removeprefix('/f/')}/skip"
        assert (await house.client.post(at, json={"a": 1})).status_code == 422
        assert (await house.client.post(at)).status_code == 200
        await house.ended(run)
        late = error(await house.client.post(at))
        assert late["skipped"] and "value" not in late


async def test_fault_b28_of_two_forms_that_look_alike_the_one_that_is_named_is_answered(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await house.start(TWO)
        waits = {each["node"]: each["token"] for each in await house.waits(run, 2)}
        for unnamed in ("/api/v1/forms//answer", "/api/v1/forms/answer", f"/api/v1/forms/{run}/answer"):
            answer = await house.client.post(unnamed, json={"values": {"text": "whose?"}})
            assert answer.status_code in (404, 405)
        at = f"/api/v1/forms/{waits['two']}/answer"
        assert (await house.client.post(at, json={"values": {"text": "of two"}})).status_code == 200
        [left] = await house.waits(run)
        assert left["token"] == waits["one"]
        assert (await house.client.post(f"/f/{waits['one']}", data={"text": "of one"})).status_code == 200
        assert sorted(await house.shown(run)) == ["of one", "of two"]


async def test_fault_b20_of_three_messages_50_ms_apart_only_the_newest_is_answered(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder, local=False) as house:
        house.client.headers.update(await house.token("run", "read"))
        runs = []
        for _ in range(3):
            runs.append(await house.start(NEWEST))
            await asyncio.sleep(0.05)
        ended = [await house.ended(run) for run in runs]
        assert [each["status"] for each in ended] == ["cancelled", "cancelled", "completed"]
        assert f"Stopped by execution {runs[1]}" in ended[0]["reason"] or f"{runs[2]}" in ended[0]["reason"]


async def test_runs_are_listed_with_the_filters_of_the_command_line(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        done = await house.start('hello = Give { value: "hello" }', tags=["a", "b"])
        await house.ended(done)
        waits, _ = await house.parked(TEXT, tags=["a"])

        async def found(query: str) -> list[str]:
            answer = await house.client.get(f"/api/v1/runs?{query}")
            assert answer.status_code == 200, answer.text
            return [each["run"] for each in answer.json()["runs"]]

        assert await found("") == [waits, done]
        assert await found("status=waiting") == [waits]
        assert await found("status=waiting&status=completed") == [waits, done]
        assert await found("tag=a&tag=b") == [done]
        assert await found("node=ask") == [waits]
        assert await found("project=demo") == await found("project=demo-id") == [waits, done]
        assert await found("since=2999-01-01T00:00:00Z") == []
        assert await found("limit=1&offset=1") == [done]
        assert (await house.client.get("/api/v1/runs?limit=1")).json()["next_offset"] == 1
        tagged = (await house.client.get("/api/v1/tags/b/runs")).json()
        assert [each["tags"] for each in tagged["runs"]] == [["a", "b"]]


@pytest.mark.parametrize(
    "query",
    [
        "status=wating",
        "tag=",
        "since=yesterday",
        "since=2030-01-01",
        "since=0001-01-01T00:00:00Z",
        "limit=1e3",
        "limit=١",
        "limit=1&limit=2",
        "offset=99999999999",
        "node=a%00b",
        "stauts=waiting",
        "a%00b=1",
    ],
)
async def test_a_filter_that_says_nothing_is_refused_and_not_passed_over(weft: Weft, query: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        answer = await house.client.get(f"/api/v1/runs?{query}")
        assert answer.status_code == 422 and error(answer)["message"]


@pytest.mark.parametrize("run", ["x", "%00", "01a2", "00000000-0000-0000-0000-000000000000", "é"])
async def test_a_run_that_is_not_there(weft: Weft, run: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        for path in ("", "/events", "/logs"):
            assert (await house.client.get(f"/api/v1/runs/{run}{path}")).status_code == 404
        assert (await house.client.post(f"/api/v1/runs/{run}/stop")).status_code == 404


START_REFUSED: dict[str, tuple[Any, int]] = {
    "not an object": ([], 422),
    "an unknown key": ({"programme": "main.weft"}, 422),
    "another project": ({"project": "nobody"}, 404),
    "no such program": ({"program": "nowhere.weft"}, 422),
    "outside of the project": ({"program": "../other.weft"}, 422),
    "an absolute path": ({"program": "/etc/x.weft"}, 422),
    "no program": ({"program": "weft.toml"}, 422),
    "NUL": ({"program": "a\0.weft"}, 422),
    "a number": ({"program": 1}, 422),
    "does not compile": ({"program": "broken.weft"}, 422),
    "empty": ({"program": "empty.weft"}, 422),
    "a bad tag": ({"tags": [""]}, 422),
    "tags that are no list": ({"tags": "a"}, 422),
    "too many tags": ({"tags": [f"t{n}" for n in range(200)]}, 422),
    "no such node": ({"targets": ["nobody"]}, 422),
    "an input that does not fit": ({"inputs": {"hello": {"nope": 1}}}, 422),
    "values that are none": ({"emit": {"hello": 1}}, 422),
    "a value that cannot be stored": ({"emit": {"hello": {"value": "a\0"}}}, 422),
    "a deadline of nothing": ({"deadline": 0}, 422),
    "a deadline in words": ({"deadline": "1h"}, 422),
    "a deadline that is none": ({"deadline": True}, 422),
    "a deadline beyond time": ({"deadline": 1e300}, 422),
}


async def test_a_start_that_does_not_fit_says_why_and_starts_nothing(weft: Weft) -> None:
    weft.write("broken.weft", "a = Nope {}")
    weft.write("empty.weft", "# nothing")
    weft.write("../other.weft", 'a = Give { value: "x" }')
    async with open_house(weft.url, weft.folder) as house:
        for what, (given, status) in START_REFUSED.items():
            answer = await house.client.post("/api/v1/runs", json=given)
            assert answer.status_code == status, (what, answer.text)
            assert error(answer)["message"], what
        headers = {"content-type": "application/json"}
        assert (await house.client.post("/api/v1/runs", content="{", headers=headers)).status_code == 400
        assert (await house.client.post("/api/v1/runs", content="{}")).status_code == 415
        huge = await house.client.post("/api/v1/runs", content=b" " * 2_000_000 + b"{}", headers=headers)
        assert huge.status_code == 413
        assert (await house.client.get("/api/v1/runs")).json()["runs"] == []


async def test_a_start_takes_what_the_command_line_takes(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        main = await house.client.post("/api/v1/runs", json={"tags": ["Order_7"], "project": "demo"})
        assert await house.shown(main.json()["run"]) == ["hello"]
        assert (await house.run(main.json()["run"]))["tags"] == ["Order_7"]
        given = await house.client.post("/api/v1/runs", json={"inputs": {"hello": {"value": "given"}}})
        assert await house.shown(given.json()["run"]) == ["given"]
        emitted = await house.client.post("/api/v1/runs", json={"emit": {"hello": {"value": "emitted"}}})
        assert await house.shown(emitted.json()["run"]) == ["emitted"]
        part = await house.client.post("/api/v1/runs", json={"targets": ["hello"]})
        assert await house.shown(part.json()["run"]) == []
        short = await house.start(NAP, deadline=0.05)
        assert (await house.ended(short))["status"] == "cancelled"


async def test_a_stop_says_what_it_did_and_a_second_one_is_a_conflict(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        bad = await house.client.post(f"/api/v1/runs/{run}/stop", json={"reason": "x" * 501})
        assert bad.status_code == 422
        stopped = await house.client.post(f"/api/v1/runs/{run}/stop", json={"reason": "enough"})
        assert stopped.json() == {"stopped": [run], "failed": []}
        assert (await house.run(run))["reason"] == "Cancelled by user: enough"
        again = await house.client.post(f"/api/v1/runs/{run}/stop")
        assert again.status_code == 409 and "had already ended: cancelled" in error(again)["message"]


async def test_runs_are_stopped_by_tag(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        mine = [(await house.parked(TEXT, tags=["user_7"]))[0] for _ in range(3)]
        other, _ = await house.parked(TEXT, tags=["user_77"])
        stopped = await house.client.post("/api/v1/tags/user_7/stop", json={"project": "demo", "reason": "left"})
        assert sorted(stopped.json()["stopped"]) == sorted(mine)
        assert (await house.run(mine[0]))["reason"] == "Cancelled by user (tag user_7): left"
        assert (await house.run(other))["status"] == "waiting"
        assert (await house.client.post("/api/v1/tags/user_7/stop")).json() == {"stopped": [], "failed": []}


async def test_a_timer_is_woken_and_nothing_else(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await house.start(NAP)
        await house.waits(run)
        for given, status in (({}, 422), ({"node": 1}, 422), ({"node": "nobody"}, 404), ({"node": "show"}, 404)):
            assert (await house.client.post(f"/api/v1/runs/{run}/wake", json=given)).status_code == status
        woken = await house.client.post(f"/api/v1/runs/{run}/wake", json={"node": "nap"})
        assert (woken.status_code, woken.json()["woken"]) == (200, 1)
        assert (await house.ended(run))["status"] == "completed"
        assert (await house.client.post(f"/api/v1/runs/{run}/wake", json={"node": "nap"})).status_code == 409
        form, _ = await house.parked(TEXT)
        refused = await house.client.post(f"/api/v1/runs/{form}/wake", json={"node": "ask"})
        assert refused.status_code == 409 and "cannot be woken" in error(refused)["message"]


async def test_errors_have_one_envelope_wherever_they_come_from(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        for method, path, status in (
            ("GET", "/api", 404),
            ("GET", "/api/v1", 404),
            ("GET", "/api/v1/nothing", 404),
            ("GET", "/api/v1/runs/", 404),
            ("DELETE", "/api/v1/runs", 405),
            ("POST", "/healthz", 405),
            ("GET", "/api/v1/runs?" + "x" * 5000, 414),
        ):
            answer = await house.client.request(method, path)
            assert answer.status_code == status, path
            assert error(answer)["code"] and answer.headers["x-content-type-options"] == "nosniff"
        assert (await house.client.delete("/api/v1/runs")).headers["allow"] == "GET, HEAD, POST"
        foreign = await house.client.post("/api/v1/runs", json={}, headers={"origin": "https://evil.example"})
        assert (foreign.status_code, error(foreign)["code"]) == (403, "origin")


async def test_alive_and_ready(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        assert (await house.client.get("/healthz")).json() == {"alive": True}
        assert (await house.client.head("/healthz")).content == b""
        assert (await house.client.get("/readyz")).json() == {"ready": True}
        house.door.stopping.set()
        assert (await house.client.get("/readyz")).status_code == 503


async def logs_of(house: House, run: str) -> list[str]:
    answer = await house.client.get(f"/api/v1/runs/{run}/logs")
    return [each["kind"] for each in answer.json()["events"]]


async def test_the_logs_of_a_run_and_its_end(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        failed = await house.start((weft.folder / "fails.weft").read_text())
        await house.ended(failed)
        assert sorted(await logs_of(house, failed)) == ["execution_failed", "log_line", "node_failed"]
