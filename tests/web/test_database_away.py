"""The door while its database is away: it says so, loses nothing, and goes on when it is back."""

from __future__ import annotations

import asyncio

from tests.cli.weft_process import Weft
from tests.engine.network import Network
from tests.web.house import TEXT, error, open_house


async def test_while_the_database_is_away_every_request_is_told_so_and_nothing_is_lost(weft: Weft) -> None:
    assert weft.url is not None
    async with Network.open(weft.url) as network, open_house(network.url, weft.folder) as house:
        run, path = await house.parked(TEXT)
        names = ("weft", "weft listener", "weft notifier", "weft writer", "weft death lock")
        network.refuse(*names)
        network.cut()
        token = path.removeprefix("/f/")
        answers = [
            await house.client.get("/readyz"),
            await house.client.get("/api/v1/runs"),
            await house.client.post(f"/api/v1/forms/{token}/answer", json={"values": {"text": "x"}}),
            await house.client.post(f"/w/{token}", json=1),
        ]
        for answer in answers:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.request.url
            assert error(answer)["message"] == "the database cannot be reached", "and nothing of where it is"
        page = await house.client.get(path)
        assert page.status_code == 503 and "Not now" in page.text
        assert (await house.client.get("/healthz")).status_code == 200
        network.admit(*names)
        while (await house.client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.02)
        assert (await house.client.post(path, data={"text": "still"})).status_code == 200
        assert await house.shown(run) == ["still"]
