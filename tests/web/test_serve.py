"""`weft serve` as the process that a person starts."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import httpx
import pytest

from tests.cli.weft_process import Weft, said, until
from tests.web.house import TEXT


@contextmanager
def serving(weft: Weft, *arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    with weft.started("serve", "--port", "0", "--json", *arguments, **more) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        with httpx.Client(base_url=json.loads(line)["address"], timeout=30) as client:
            yield process, client


def form_of(client: httpx.Client, run: str) -> dict[str, Any]:
    """The run's form, once it is open."""
    found: list[dict[str, Any]] = []

    def opened() -> bool:
        found[:] = [each for each in client.get("/api/v1/forms").json()["forms"] if each["run"] == run]
        return bool(found)

    until(opened)
    return found[0]


def test_it_prints_its_address_serves_and_drains(weft: Weft) -> None:
    weft.write("asks.weft", TEXT)
    with weft.started("serve", "--port", "0") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert "serves demo" in said(process, "drains it")
        with httpx.Client(base_url=address, timeout=30) as client:
            run = client.post("/api/v1/runs", json={"program": "asks.weft"}).json()["run"]
            path = form_of(client, run)["path"]
            assert "Say something" in client.get(path).text
            assert client.post(path, data={"text": "hi"}).status_code == 200
            until(lambda: weft.status(run) == "completed")
        process.send_signal(signal.SIGTERM)
        said(process, "draining")
        assert process.wait(timeout=30) == 0
    assert weft("logs", run).ok().stdout.strip().endswith("show: hi")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_open_streams_and_long_polls_end_at_once(weft: Weft, number: signal.Signals) -> None:
    weft.write("asks.weft", TEXT)
    with serving(weft) as (process, client):
        run = client.post("/api/v1/runs", json={"program": "asks.weft"}).json()["run"]
        form_of(client, run)
        at = f"/api/v1/runs/{run}/events"
        until(lambda: client.get(f"/api/v1/runs/{run}").json()["status"] == "waiting")
        cursor = client.get(at).json()["cursor"]
        polled: list[dict[str, Any]] = []
        polling = threading.Thread(target=lambda: polled.append(client.get(f"{at}?after={cursor}&wait=30").json()))
        with client.stream("GET", at, headers={"accept": "text/event-stream"}) as answer:
            lines = answer.iter_lines()
            while "node_suspended" not in next(lines):
                pass
            polling.start()
            # Asked behind the long poll on the same client: when this is answered, that is being waited for.
            assert client.get("/healthz").status_code == 200
            process.send_signal(number)
            assert "execution_completed" not in "".join(lines)
        polling.join(timeout=20)
        assert polled in ([{"events": [], "cursor": cursor, "ended": False}], [])
        assert process.wait(timeout=20) == 0
    assert weft.status(run) == "waiting"


def test_a_port_in_use_is_one_clear_message(weft: Weft) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = weft("serve", "--port", str(port))
    assert (done.status, done.stdout) == (5, "")
    assert done.stderr.splitlines() == [
        f"error: port {port} of 127.0.0.1 is in use by another process",
        "hint: Choose another with --port.",
    ]


def test_others_are_let_in_only_once_there_is_a_token(weft: Weft) -> None:
    refused = weft("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.status == 2 and "no token" in refused.stderr and "weft token mint" in refused.stderr
    token = weft("token", "mint", "bot", "--right", "read").ok().stdout.strip()
    with serving(weft, "--host", "0.0.0.0") as (_, client):
        assert client.get("/api/v1/runs").status_code == 401
        assert client.get("/api/v1/runs", headers={"authorization": f"Bearer {token}"}).json()["runs"] == []
    weft("token", "revoke", "1").ok()
    assert weft("serve", "--host", "0.0.0.0", "--port", "0").status == 2, "a token that opens nothing is none"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("--host", "nowhere.invalid"), 2, "no address"),
        (("--host", "192.0.2.1"), 2, "no address of this machine"),
        (("--port", "65536"), 2, "65536"),
        (("--project", "nowhere"), 5, "nowhere does not exist"),
    ],
)
def test_what_cannot_be_served_is_said(weft: Weft, arguments: tuple[str, ...], status: int, told: str) -> None:
    done = weft("serve", *arguments)
    assert done.status == status and told in done.stderr and "Traceback" not in done.stderr


def test_fault_b46_a_form_of_a_worker_that_died_is_answered_here_and_resumed_elsewhere(
    weft: Weft, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Weft(weft.url, tmp_path_factory.mktemp("elsewhere"))
    elsewhere.write("weft.toml", '[project]\nid = "elsewhere"\n')
    weft.write("asks.weft", TEXT)
    with serving(elsewhere) as (_, client):
        run = weft.queue("asks.weft")
        with weft.started("worker") as first:
            path = form_of(client, run)["path"]
            first.kill()
            first.wait()
        assert client.post(path, data={"text": "kept"}).status_code == 200
        assert client.get(path).status_code == 409, "stored before anybody could resume"
        assert weft.status(run) == "queued"
        with weft.started("worker"):
            until(lambda: weft.status(run) == "completed")
    assert weft("logs", run).ok().stdout.strip().endswith("show: kept")


def test_fault_b36_a_run_that_parks_says_the_whole_address_of_its_form(weft: Weft) -> None:
    weft.write("asks.weft", TEXT)
    with serving(weft) as (_, client):
        address = str(client.base_url).rstrip("/")
        parked = weft("run", "asks.weft")
        assert parked.status == 6
        [line] = parked.stderr.splitlines()
        [form] = client.get("/api/v1/forms").json()["forms"]
        assert f" or {address}{form['path']}; " in line
        assert f"  {address}{form['path']}\n" in weft("forms").ok().stdout
        assert f"{address}{form['path']}" in weft("why", form["run"]).ok().stdout
    assert f"  {form['path']} of weft serve\n" in weft("forms").ok().stdout, "nobody serves it any more"


def test_it_takes_over_and_drives_what_is_queued(weft: Weft) -> None:
    run = weft.queue()
    with serving(weft, "--concurrency", "2"):
        until(lambda: weft.status(run) == "completed")


def test_a_worker_that_broke_ends_the_process_with_a_message(weft: Weft) -> None:
    """A loop of the worker that fails for good takes the door along: it would serve forms that nothing resumes."""
    with serving(weft) as (process, client):
        assert client.get("/readyz").status_code == 200
        asyncio.run(break_workers(str(weft.url)))
        _, told = process.communicate(timeout=40)
    assert process.returncode == 7
    assert "error: the database refused" in told and "Traceback" not in told


async def break_workers(url: str) -> None:
    """What a worker cannot go on without is gone."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ALTER TABLE weft.workers RENAME TO gone")
    finally:
        await connection.close()
