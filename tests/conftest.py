"""What every test may ask for: a real PostgreSQL and databases of its own in it.

    server                the address of the server's maintenance database: one server a test process, fsync
                          off
    empty_database_url    a new database with nothing in it, dropped after the test
    database_url          a new database with weft's schema, dropped after the test
    new_database          a function that makes one more: `new_database(migrated=True) -> url`

    durable_server, durable_database_url    the same on a server with fsync on, for what is about durability

    server_folder         an empty folder for a server that the test starts itself; stopped afterwards

    rounds                how often a race is run: `--rounds`; `ran` puts into the summary how often it really was
    soak                  whether everything is to be tried that takes long: `--soak`

The servers are weft's own embedded ones in temporary folders. A test run that was killed leaves its server
behind; the next run stops it. `--postgres FOLDER` runs them with the programs of another PostgreSQL, such as
/usr/lib/postgresql/15/bin.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from weft.store.embedded import EmbeddedServer
from weft.store.embedded.folder import USERS_LOCK
from weft.store.embedded.locks import LockFile
from weft.store.embedded.postmaster import is_process

FOLDERS = "weft-tests-"
ROUNDS = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=ROUNDS, help=f"rounds of each race (default {ROUNDS})")
    parser.addoption("--soak", action="store_true", help="try every point of every fault, however long it takes")
    parser.addoption(
        "--postgres", type=Path, metavar="FOLDER", help="the programs of another PostgreSQL than weft's own"
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = {
        report.nodeid: said
        for report in terminalreporter.stats.get("passed", [])
        for name, said in report.user_properties
        if name == "rounds"
    }
    for test, said in sorted(told.items()):
        terminalreporter.write_line(f"{test}: {said}")


class Databases:
    """Makes and drops databases on one server, over one connection that lives in a thread of its own."""

    def __init__(self, dsn: str, portal: BlockingPortal) -> None:
        self.dsn = dsn
        self._portal = portal
        self._connection = portal.call(asyncpg.connect, dsn)
        self._numbers = itertools.count(1)
        self._template: str | None = None

    def create(self, *, migrated: bool) -> str:
        return self._url(self._create(self._migrated_template() if migrated else "template0"))

    def drop(self, url: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)")

    def close(self) -> None:
        self._portal.call(self._connection.close)

    def _migrated_template(self) -> str:
        if self._template is None:
            name = self._create("template0")
            self._portal.call(_migrate, self._url(name))
            self._template = name
        return self._template

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        # Copying files needs a checkpoint, which costs little without fsync; the other way fills the WAL.
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def _execute(self, statement: str) -> None:
        self._portal.call(self._connection.execute, statement)

    def _url(self, name: str) -> str:
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{name}"))


async def _migrate(url: str) -> None:
    from weft.store.migrate import migrate

    connection = await asyncpg.connect(url)
    try:
        await migrate(connection)
    finally:
        await connection.close()


@contextmanager
def _databases(settings: dict[str, str], tools: Path | None) -> Iterator[Databases]:
    _stop_left_over_servers()
    with _temporary_server_folder() as folder, start_blocking_portal() as portal:
        server = EmbeddedServer(folder, settings=settings, tools=tools)
        server.attach()
        try:
            databases = Databases(server.dsn, portal)
            yield databases
            databases.close()
        finally:
            server.leave()


@contextmanager
def _temporary_server_folder() -> Iterator[Path]:
    # Not pytest's tmp_path: when root runs the tests, that lies in a folder that only root may enter, and the
    # server does not run as root. This one is also short enough for a socket.
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDERS}{os.getpid()}-"))
    try:
        yield folder
    finally:
        _stop_and_remove(folder)


def _stop_and_remove(folder: Path) -> None:
    """Stop what runs in the folder and remove it, unless somebody still uses it."""
    server = EmbeddedServer(folder)
    server.attach_running()
    server.leave()
    with suppress(OSError):
        users = LockFile(folder / USERS_LOCK)
        try:
            if users.try_exclusive():
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            users.close()


def _stop_left_over_servers() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*-*"):
        with suppress(OSError):
            if not is_process(int(folder.name.split("-")[2])) and (folder / USERS_LOCK).exists():
                _stop_and_remove(folder)


@pytest.fixture(scope="session")
def _server(pytestconfig: pytest.Config) -> Iterator[Databases]:
    with _databases({"fsync": "off", "full_page_writes": "off"}, pytestconfig.getoption("--postgres")) as databases:
        yield databases


@pytest.fixture(scope="session")
def _durable_server(pytestconfig: pytest.Config) -> Iterator[Databases]:
    with _databases({}, pytestconfig.getoption("--postgres")) as databases:
        yield databases


@pytest.fixture(scope="session")
def server(_server: Databases) -> str:
    return _server.dsn


@pytest.fixture(scope="session")
def durable_server(_durable_server: Databases) -> str:
    return _durable_server.dsn


@pytest.fixture
def new_database(_server: Databases) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def make(*, migrated: bool = True) -> str:
        made.append(_server.create(migrated=migrated))
        return made[-1]

    yield make
    for url in made:
        _server.drop(url)


@pytest.fixture
def empty_database_url(new_database: Callable[..., str]) -> str:
    return new_database(migrated=False)


@pytest.fixture
def database_url(new_database: Callable[..., str]) -> str:
    return new_database(migrated=True)


@pytest.fixture
def durable_database_url(_durable_server: Databases) -> Iterator[str]:
    url = _durable_server.create(migrated=True)
    yield url
    _durable_server.drop(url)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--rounds"))


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--soak"))


@pytest.fixture
def ran(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say in the summary what was run: `ran("300 rounds")`."""
    return lambda said: record_property("rounds", said)


@pytest.fixture
def server_folder() -> Iterator[Path]:
    with _temporary_server_folder() as folder:
        yield folder
