"""A door and a worker inside the test's process, on a real socket; and what a client does with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from tests.web.described import as_described
from weft.service import upkeep
from weft.service.opening import Store, open_store
from weft.service.projects import LoadedProject, load_project
from weft.service.running import open_runtime
from weft.settings import Settings
from weft.web.door import Door
from weft.web.server import listening_on, open_door

ASK = """\
ask = HumanQuery {
  title: "Approve the draft"
  fields: [{ "kind": "approve_reject", "key": "ok" }, { "kind": "text_input", "key": "note" }]
}
show = Show { data: ask.note }
"""

TEXT = """\
ask = HumanQuery { title: "Say something"  fields: [{ "kind": "text_input", "key": "text" }] }
show = Show { data: ask.text }
"""

HOOK = """\
hook = WaitForWebhook -> (body: String)
show = Show { data: hook.body }
headers = Show { data: hook.headers }
query = Show { data: hook.query }
"""

NAP = "nap = Wait { seconds: 86400 }\nshow = Show { data: nap.wokeAt }\n"


@dataclass
class House:
    address: str
    door: Door
    store: Store
    folder: Path
    client: httpx.AsyncClient

    async def start(self, program: str = TEXT, **given: Any) -> str:
        """A run of this text, started over the API; its id."""
        name = f"program-{abs(hash(program))}.weft"
        (self.folder / name).write_text(program, "utf-8")
        answer = await self.client.post("/api/v1/runs", json={"program": name, **given})
        assert answer.status_code == 201, answer.text
        run: str = answer.json()["run"]
        assert answer.headers["location"] == f"/api/v1/runs/{run}"
        return run

    async def run(self, run: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/v1/runs/{run}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def waits(self, run: str, count: int = 1) -> list[dict[str, Any]]:
        """What the run waits for, once it waits for so much and nothing runs."""
        while True:
            found = await self.run(run)
            assert not found["ended"], found
            if len(found["why"]["waits"]) == count and found["status"] == "waiting":
                waits: list[dict[str, Any]] = found["why"]["waits"]
                return waits
            await asyncio.sleep(0.02)

    async def parked(self, program: str = TEXT, **given: Any) -> tuple[str, str]:
        """A run that waits for one thing, and the path where that is answered."""
        run = await self.start(program, **given)
        [wait] = await self.waits(run)
        return run, wait["path"]

    async def ended(self, run: str) -> dict[str, Any]:
        while not (found := await self.run(run))["ended"]:
            await asyncio.sleep(0.02)
        return found

    async def events(self, run: str) -> list[dict[str, Any]]:
        answer = await self.client.get(f"/api/v1/runs/{run}/events?limit=1000")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["events"]
        return found

    async def shown(self, run: str) -> list[str]:
        """What the run's nodes showed, in order."""
        await self.ended(run)
        return [each["text"] for each in await self.events(run) if each["kind"] == "log_line"]

    async def token(self, *rights: str, project: int | None = None) -> dict[str, str]:
        """The header of a new token."""
        _, text = await upkeep.mint(self.store, "of a test", project, rights)
        return {"authorization": f"Bearer {text}"}


@asynccontextmanager
async def open_house(
    url: str, folder: Path, *, local: bool = True, serves: tuple[LoadedProject, ...] = ()
) -> AsyncIterator[House]:
    """Not a fixture, since what is opened in one task has to be closed in it. `local=False`: as on an address that
    others reach."""
    loaded = [load_project(folder), *serves]
    async with (
        open_store(Settings(database_url=url), pool_size=10) as store,
        listening_on(store, "127.0.0.1", 0) as listening,
        open_runtime(store, loaded, claims=True) as runtime,
        open_door(store, loaded, replace(listening, local=local)) as door,
        httpx.AsyncClient(base_url=listening.address, timeout=30, event_hooks={"response": [as_described]}) as client,
    ):
        runtime.on_saved(lambda run, _: door.saved(run))
        yield House(listening.address, door, store, folder, client)


def error(answer: httpx.Response) -> dict[str, Any]:
    """What the API says went wrong, in its envelope."""
    body = answer.json()
    assert list(body) == ["error"] and {"code", "message"} <= body["error"].keys(), body
    found: dict[str, Any] = body["error"]
    return found
