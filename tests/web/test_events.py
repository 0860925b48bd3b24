"""Events over the API: page by page, waiting, as a stream; each once, whoever goes on where."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import anyio
import httpx
import pytest

from tests.cli.weft_process import Weft
from tests.web import house as houses
from tests.web.house import TEXT, House, error, open_house
from weft.flow.events import LogLine, encode
from weft.store.runs import journal

STREAM = {"accept": "text/event-stream"}


@dataclass
class Told:
    """A server-sent event."""

    id: str = ""
    kind: str = ""
    data: dict[str, Any] = field(default_factory=dict)


async def follow(answer: httpx.Response, most: int = 10_000) -> list[Told]:
    """The events of a stream to its end, or the first so many."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    found: list[Told] = []
    told = Told()
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        match name:
            case "id":
                told.id = value
            case "event":
                told.kind = value
            case "data":
                told.data = json.loads(value)
            case "" if told.data:
                found.append(told)
                told = Told()
                if len(found) == most:
                    break
    return found


async def stream(house: House, run: str, **headers: str) -> list[Told]:
    async with house.client.stream("GET", f"/api/v1/runs/{run}/events", headers={**STREAM, **headers}) as answer:
        assert answer.status_code == 200
        return await follow(answer)


async def completed(house: House) -> str:
    run, path = await house.parked(TEXT)
    assert (await house.client.post(path, data={"text": "hello"})).status_code == 200
    await house.ended(run)
    return run


async def late(house: House, run: str, text: str) -> None:
    """A line that comes after the run's end."""
    async with house.store.database.connection() as connection:
        row = await connection.fetchrow("SELECT project FROM runs WHERE id = $1", UUID(run))
        await journal.aftermath(connection, row["project"], UUID(run), encode(LogLine("ask", (), "warning", text)))


async def test_pages_of_any_size_hold_each_event_once(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await completed(house)
        for text in ("one", "two", "three"):
            await late(house, run, text)
        whole = await house.events(run)
        assert whole[-1]["kind"] == "execution_completed"
        assert [each["text"] for each in whole if each["seq"] is None] == ["one", "two", "three"]
        numbered = [each["seq"] for each in whole if each["seq"] is not None]
        assert numbered == list(range(1, len(numbered) + 1))
        for size in range(1, len(whole) + 2):
            seen: list[dict[str, Any]] = []
            after = "0"
            while True:
                page = (await house.client.get(f"/api/v1/runs/{run}/events?limit={size}&after={after}")).json()
                assert len(page["events"]) <= size
                seen += page["events"]
                after = page["cursor"]
                if page["ended"]:
                    break
            assert seen == whole, size
        for at, each in enumerate(whole):
            rest = (await house.client.get(f"/api/v1/runs/{run}/events?after={each['cursor']}")).json()
            assert rest["events"] == whole[at + 1 :] and rest["ended"]


async def test_events_are_filtered_by_kind_and_node(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await completed(house)
        page = (await house.client.get(f"/api/v1/runs/{run}/events?kind=node_completed&node=ask&node=show")).json()
        assert [each["node"] for each in page["events"]] == ["ask", "show"]
        assert (await house.client.get(f"/api/v1/runs/{run}/events?kind=node_done")).status_code == 422


async def test_a_long_poll_ends_with_the_first_news(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        cursor = (await house.client.get(f"/api/v1/runs/{run}/events")).json()["cursor"]
        at = f"/api/v1/runs/{run}/events?after={cursor}"
        nothing = (await house.client.get(f"{at}&wait=1")).json()
        assert nothing == {"events": [], "cursor": cursor, "ended": False}
        waiting = asyncio.create_task(house.client.get(f"{at}&wait=30"))
        await until_followed(house)
        assert (await house.client.post(path, data={"text": "x"})).status_code == 200
        with anyio.fail_after(10):
            news = (await waiting).json()
        assert news["events"][0]["kind"] == "suspension_resolved"
        assert (await house.client.get(f"{at}&wait=31")).status_code == 422


async def until_followed(house: House, count: int = 1) -> None:
    while house.door.followers != count:
        await asyncio.sleep(0.01)


async def test_a_stream_tells_every_event_and_ends_with_the_run(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        following = asyncio.create_task(stream(house, run))
        await until_followed(house)
        assert (await house.client.post(path, data={"text": "x\ny"})).status_code == 200
        with anyio.fail_after(20):
            told = await following
        events = await house.events(run)
        assert [{"cursor": each.id, **each.data} for each in told] == events
        assert [each.kind for each in told] == [each["kind"] for each in events]


async def test_the_head_of_a_stream_is_no_stream(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        with anyio.fail_after(10):
            head = await house.client.head(f"/api/v1/runs/{run}/events", headers=STREAM)
        assert head.status_code == 200 and head.headers["content-type"].startswith("text/event-stream")


async def test_a_stream_goes_on_behind_any_event(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await completed(house)
        await late(house, run, "one")
        await late(house, run, "two")
        whole = await stream(house, run)
        for at, each in enumerate(whole[:-1]):
            rest = await stream(house, run, **{"last-event-id": each.id})
            assert rest == whole[at + 1 :]
        over = await house.client.get(
            f"/api/v1/runs/{run}/events", headers={**STREAM, "last-event-id": whole[-1].id}
        )
        assert over.status_code == 204, "a browser does not ask again"


@pytest.mark.parametrize("cursor", ["x", "-1", "1.", "1.x", "9" * 16, "1;2", "١"])
async def test_what_is_no_cursor(weft: Weft, cursor: str) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run = await completed(house)
        at = f"/api/v1/runs/{run}/events"
        assert (await house.client.get(at, params={"after": cursor})).status_code == 422
        if cursor.isascii():
            answer = await house.client.get(at, headers={**STREAM, "last-event-id": cursor})
            assert answer.status_code == 422 and error(answer)["hint"]


async def test_a_closing_door_ends_streams_and_long_polls_at_once(weft: Weft) -> None:
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        at = f"/api/v1/runs/{run}/events"
        cursor = (await house.client.get(at)).json()["cursor"]
        polling = asyncio.create_task(house.client.get(f"{at}?after={cursor}&wait=30"))
        following = asyncio.create_task(stream(house, run))
        await until_followed(house, 2)
        house.door.stop()
        with anyio.fail_after(5):
            assert (await polling).json()["events"] == []
            assert (await following)[-1].data["kind"] != "execution_completed"


async def test_whoever_leaves_is_not_kept_and_too_many_are_told(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.web.door.MOST_FOLLOWERS", 2)
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        at = f"/api/v1/runs/{run}/events"
        following = [asyncio.create_task(stream(house, run)) for _ in range(2)]
        await until_followed(house, 2)
        cursor = (await house.client.get(at)).json()["cursor"]
        for many in (await house.client.get(f"{at}?wait=1&after={cursor}"), await house.client.get(at, headers=STREAM)):
            assert (many.status_code, many.headers["retry-after"]) == (503, "5")
        for each in following:
            each.cancel()
        await asyncio.wait(following)
        with anyio.fail_after(20):
            await until_followed(house, 0)
        assert (await house.client.get(at)).status_code == 200


async def test_a_token_that_is_revoked_ends_its_stream(weft: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.service import upkeep

    monkeypatch.setattr("weft.web.api.events.ASK_AGAIN", 0.0)
    async with open_house(weft.url, weft.folder) as house:
        run, _ = await house.parked(TEXT)
        house.door.local = False
        token = await house.token("read")
        following = asyncio.create_task(stream(house, run, **token))
        await until_followed(house)
        [minted] = await upkeep.every_token(house.store)
        await upkeep.revoke(house.store, minted.id)
        with anyio.fail_after(20):
            told = await following
        assert told[-1].kind == "refused" and told[-1].data["error"]["code"] == "unauthorised"


async def test_events_of_a_run_that_another_process_drives(weft: Weft) -> None:
    """Nobody here says that there is news; it is found all the same."""
    async with (
        open_house(weft.url, weft.folder) as house,
        houses.open_house(weft.url, weft.folder) as other,
    ):
        run, path = await house.parked(TEXT)
        following = [asyncio.create_task(stream(each, run)) for each in (house, other)]
        await until_followed(house)
        await until_followed(other)
        assert (await other.client.post(path, data={"text": "x"})).status_code == 200
        with anyio.fail_after(20):
            one, two = [await each for each in following]
        assert one == two and one[-1].kind == "execution_completed"
