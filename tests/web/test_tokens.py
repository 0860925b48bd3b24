"""Who is let in where others can reach the door: tokens, their rights, their projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.weft_process import Weft
from tests.web.described import API, operation
from tests.web.house import ASK, NAP, TEXT, House, error, open_house
from weft.service import upkeep
from weft.service.listing import projects_named
from weft.service.projects import load_project
from weft.store.tokens import RIGHTS
from weft.web.api.routes import ENDPOINTS

Ask = Callable[[dict[str, str]], Any]


async def requests(house: House) -> dict[str, tuple[str, Ask]]:
    """A request for each endpoint that needs a right, which would do something: the right, and how to ask."""
    run, path = await house.parked(ASK)
    token = path.removeprefix("/f/")
    skipped = (await house.parked(TEXT))[1].removeprefix("/f/")
    timer = await house.start(NAP)
    [_] = await house.waits(timer)
    tagged, _ = await house.parked(TEXT, tags=["gone"])
    stopped, _ = await house.parked(TEXT)

    def get(at: str) -> Ask:
        return lambda headers: house.client.get(at, headers=headers)

    def post(at: str, body: Any) -> Ask:
        return lambda headers: house.client.post(at, headers=headers, json=body)

    asks = {
        "listForms": get("/api/v1/forms"),
        "getForm": get(f"/api/v1/forms/{token}"),
        "answerForm": post(f"/api/v1/forms/{token}/answer", {"values": {"ok": True, "note": ""}}),
        "skipForm": lambda headers: house.client.post(f"/api/v1/forms/{skipped}/skip", headers=headers),
        "listRuns": get("/api/v1/runs"),
        "startRun": post("/api/v1/runs", {"project": "demo-id"}),
        "getRun": get(f"/api/v1/runs/{run}"),
        "stopRun": post(f"/api/v1/runs/{stopped}/stop", {}),
        "wakeRun": post(f"/api/v1/runs/{timer}/wake", {"node": "nap"}),
        "listEvents": get(f"/api/v1/runs/{run}/events"),
        "listLogs": get(f"/api/v1/runs/{run}/logs"),
        "listRunsOfTag": get("/api/v1/tags/gone/runs"),
        "stopTag": post("/api/v1/tags/gone/stop", {"project": "demo-id"}),
    }
    assert tagged
    rights = {each.name: each.right for each in ENDPOINTS if each.right is not None}
    assert rights.keys() == asks.keys()
    return {name: (str(rights[name]), asks[name]) for name in asks}


async def test_each_endpoint_needs_its_right_and_no_other_opens_it(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        asks = await requests(house)
        house.door.local = False
        tokens = {right: await house.token(right) for right in RIGHTS}
        for name, (right, ask) in asks.items():
            for other in RIGHTS:
                if other != right:
                    refused = await ask(tokens[other])
                    assert refused.status_code == 403 and error(refused)["code"] == "forbidden", (name, other)
        for name, (right, ask) in asks.items():
            assert (await ask(tokens[right])).status_code in (200, 201), name


async def test_without_a_token_that_opens_something_nothing_opens(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        asks = await requests(house)
        house.door.local = False
        good = (await house.token("read"))["authorization"]
        revoked = await house.token(*RIGHTS)
        [*_, last] = await upkeep.every_token(house.store)
        await upkeep.revoke(house.store, last.id)
        text = good.removeprefix("Bearer ")
        wrong = ["Bearer x", f"Basic {text}", text, f"Bearer {text}x", "Bearer", f"Token {text}", f"Bearer {text[:-1]}"]
        for name, (_, ask) in asks.items():
            for headers in ({}, revoked, *({"authorization": each} for each in wrong)):
                refused = await ask(headers)
                assert refused.status_code == 401, (name, headers)
                assert refused.headers["www-authenticate"] == "Bearer"
                assert text not in refused.text
        assert (await house.client.get("/api/v1/runs", headers={"authorization": f"bearer {text}"})).status_code == 200
        in_the_address = await house.client.get("/api/v1/runs", params={"token": text})
        assert in_the_address.status_code == 401


async def test_a_token_of_one_project_hears_nothing_of_another(
    weft: Weft, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Weft(weft.url, tmp_path_factory.mktemp("other"))
    other.write("weft.toml", '[project]\nid = "other-id"\nname = "other"\n')
    other.write("nodes/steps.py", (weft.folder / "nodes/steps.py").read_text())
    other.write("main.weft", TEXT)
    async with open_house(weft.url, weft.folder, serves=(load_project(other.folder),)) as house:
        foreign = (await house.client.post("/api/v1/runs", json={"project": "other"})).json()["run"]
        [wait] = await house.waits(foreign)
        mine = await house.start(TEXT, project="demo", tags=["t"])
        await house.waits(mine)
        house.door.local = False
        [demo] = [each.id for each in await projects_named(house.store.database, "demo-id")]
        token = await house.token(*RIGHTS, project=demo)
        house.client.headers.update(token)

        assert [each["run"] for each in (await house.client.get("/api/v1/runs")).json()["runs"]] == [mine]
        assert [each["run"] for each in (await house.client.get("/api/v1/forms")).json()["forms"]] == [mine]
        missing = f"no run has the id {foreign}"
        form = f"/api/v1/forms/{wait['token']}"
        for answer in (
            await house.client.get("/api/v1/runs?project=other-id"),
            await house.client.get(f"/api/v1/runs/{foreign}"),
            await house.client.get(f"/api/v1/runs/{foreign}/events"),
            await house.client.get(f"/api/v1/runs/{foreign}/logs"),
            await house.client.post(f"/api/v1/runs/{foreign}/stop"),
            await house.client.post(f"/api/v1/runs/{foreign}/wake", json={"node": "ask"}),
            await house.client.get(form),
            await house.client.post(f"{form}/answer", json={"values": {"text": "x"}}),
            await house.client.post(f"{form}/skip"),
            await house.client.post("/api/v1/runs", json={"project": "other"}),
            await house.client.post("/api/v1/tags/t/stop", json={"project": "other"}),
        ):
            assert answer.status_code == 404, answer.request.url
            assert "other" not in answer.text or "no project" in answer.text
        assert error(await house.client.get(f"/api/v1/runs/{foreign}"))["message"] == missing
        stopped = await house.client.post("/api/v1/tags/t/stop")
        assert stopped.json()["stopped"] == [mine], "the token's project is meant"
        house.client.headers.pop("authorization")
        house.door.local = True
        assert (await house.run(foreign))["status"] == "waiting"


async def test_who_may_not_answer_sees_no_token_of_a_wait(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        token = path.removeprefix("/f/")
        house.door.local = False
        reader, answerer = await house.token("read"), await house.token("read", "answer")
        for at in ("/api/v1/forms", f"/api/v1/runs/{run}", f"/api/v1/runs/{run}/events", f"/api/v1/forms/{token}"):
            assert token[32:] not in (await house.client.get(at, headers=reader)).text, at
            assert token in (await house.client.get(at, headers=answerer)).text, at
        streamed: list[str] = []
        headers = {**reader, "accept": "text/event-stream"}
        async with house.client.stream("GET", f"/api/v1/runs/{run}/events", headers=headers) as answer:
            async for line in answer.aiter_lines():
                streamed.append(line)
                if "node_suspended" in line:
                    break
        assert "suspension_registered" in "".join(streamed) and token[32:] not in "".join(streamed)


async def test_a_form_and_a_webhook_open_by_their_own_address_alone(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        house.door.local = False
        assert (await house.client.get(path)).status_code == 200
        assert (await house.client.post(path, data={"text": "by link"})).status_code == 200
        for at in ("/openapi.json", "/healthz", "/readyz", "/", "/static/style.css"):
            assert (await house.client.get(at)).status_code == 200
        house.client.headers.update(await house.token("read"))
        assert await house.shown(run) == ["by link"]


async def test_on_this_machine_any_key_is_taken_and_a_known_one_has_its_rights(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        for headers in ({}, {"authorization": "Bearer whatever"}, {"authorization": "Basic eDp5"}):
            assert (await house.client.get("/api/v1/runs", headers=headers)).status_code == 200
        reader = await house.token("read")
        assert (await house.client.post(f"/api/v1/runs/{run}/stop", headers=reader)).status_code == 403


async def test_an_answer_says_which_token_gave_it_and_no_secret_is_kept(
    weft: Weft, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        house.door.local = False
        house.client.headers.update(await house.token("read", "answer"))
        secret = house.client.headers["authorization"].removeprefix("Bearer ")
        at = f"/api/v1/forms/{path.removeprefix('/f/')}/answer"
        assert (await house.client.post(at, json={"values": {"text": "x"}})).status_code == 200
        await house.ended(run)
        told = await house.events(run)
        assert "the token 'of a test'" in [each.get("by") for each in told]
        assert secret not in str(told)
    captured = capfd.readouterr()
    assert secret not in captured.out + captured.err


async def test_where_others_reach_the_door_any_host_is_served(weft: Weft) -> None:
    """A token decides there; names are given by proxies and orchestrators."""
    async with open_house(weft.url, weft.folder, local=False) as house:
        assert (await house.client.get("/healthz", headers={"host": "weft.example"})).status_code == 200
        assert (await house.client.get("/api/v1/runs", headers={"host": "weft.example"})).status_code == 401


def test_what_needs_a_right_says_so() -> None:
    for each in ENDPOINTS:
        said = operation(each.method, each.path)
        assert said is not None
        assert ("security" in said) == (each.right is not None)
        assert {"401", "403"} <= said["responses"].keys() or each.right is None
    assert API["openapi"].startswith("3.1")



async def test_a_token_for_one_tag_sees_and_touches_runs_that_carry_it_alone(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        mine, my_form = await house.parked(TEXT, tags=["sender_7"])
        theirs, their_form = await house.parked(TEXT, tags=["sender_8"])
        house.door.local = False
        _, text = await upkeep.mint(house.store, "one sender", None, RIGHTS, tag="sender_7")
        token = {"authorization": f"Bearer {text}"}

        async def get(at: str) -> Any:
            return await house.client.get(f"/api/v1{at}", headers=token)

        async def post(at: str, body: Any = None) -> Any:
            return await house.client.post(f"/api/v1{at}", headers=token, json=body or {})

        assert [each["run"] for each in (await get("/runs")).json()["runs"]] == [mine]
        assert [each["run"] for each in (await get("/forms")).json()["forms"]] == [mine]
        assert (await get("/tags/sender_8/runs")).json()["runs"] == []
        hidden = their_form.removeprefix("/f/")
        for at in (f"/runs/{theirs}", f"/runs/{theirs}/events", f"/forms/{hidden}"):
            assert (await get(at)).status_code == 404, at
        for at in (f"/runs/{theirs}/stop", f"/forms/{hidden}/skip"):
            assert (await house.client.post(f"/api/v1{at}", headers=token)).status_code == 404, at
        refused = await post("/tags/sender_8/stop", {"project": "demo-id"})
        assert refused.status_code == 403 and "sender_7" in error(refused)["message"]
        started = (await post("/runs", {"project": "demo-id", "tags": ["other"]})).json()["run"]
        assert {"sender_7", "other"} <= set((await get(f"/runs/{started}")).json()["tags"])
        answered = await post(f"/forms/{my_form.removeprefix('/f/')}/answer", {"values": {"text": "mine"}})
        assert answered.status_code == 200
        stopped = (await post("/tags/sender_7/stop", {"project": "demo-id"})).json()["stopped"]
        assert theirs not in stopped
