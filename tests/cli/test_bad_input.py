"""What people get wrong, and what the world does: one clear message, the right exit status, never a traceback."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from tests.cli.conftest import HOLDS, PROJECT
from tests.cli.weft_process import Done, Weft, until


def refused(done: Done, status: int, *words: str) -> None:
    assert done.status == status, done
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error: ") == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_missing_file(weft: Weft, command: str):
    refused(weft(command, "missing.weft"), 5, "missing.weft does not exist")


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_directory_without_a_program(weft: Weft, command: str):
    (weft.folder / "empty").mkdir()
    refused(weft(command, "empty"), 4, "empty has no program", "src/main.weft")


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_binary_file(weft: Weft, command: str):
    (weft.folder / "nul.weft").write_bytes(b"a = Give\0{}")
    refused(weft(command, "nul.weft"), 4, "NUL byte at offset 8")
    (weft.folder / "latin.weft").write_bytes(b'a = Give { value: "\xe9" }')
    refused(weft(command, "latin.weft"), 4, "not UTF-8 text: byte 0xe9 at offset 19")


def test_neither_a_file_nor_a_folder(weft: Weft):
    os.mkfifo(weft.folder / "pipe.weft")
    refused(weft("run", "pipe.weft"), 4, "neither a file nor a folder")


def test_a_byte_order_mark_is_no_part_of_the_program(weft: Weft):
    (weft.folder / "marked.weft").write_bytes(b"\xef\xbb\xbf" + (weft.folder / "main.weft").read_bytes())
    assert weft("run", "marked.weft").ok().stdout == "hello\n"


def test_an_empty_file(weft: Weft):
    weft.write("empty.weft", "")
    refused(weft("run", "empty.weft"), 4, "empty.weft has no nodes: there is nothing to run")
    checked = weft("check", "empty.weft").ok()
    assert "empty.weft has no nodes" in checked.stderr
    assert weft("executions").ok().stdout == ""


def test_a_file_of_50_megabytes(weft: Weft):
    with (weft.folder / "big.weft").open("wb") as file:
        file.truncate(50 * 2**20)
    refused(weft("run", "big.weft"), 4, "big.weft is 52,428,800 bytes; at most 16,777,216 are read")


def test_an_unknown_node_names_the_nearest(weft: Weft):
    weft.write("unknown.weft", 'a = Giv { value: "x" }')
    done = weft("run", "unknown.weft")
    assert done.status == 4
    assert "unknown.weft:1:5: error[unknown-type]:" in done.stderr
    assert "Give" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_node_file_with_a_syntax_error_hides_no_other(weft: Weft):
    weft.write("nodes/broken.py", "class Oops(:\n")
    fine = weft("run", "main.weft")
    assert (fine.status, fine.stdout) == (0, "hello\n")
    assert "nodes/broken.py:1:" in fine.stderr and "warning" in fine.stderr
    weft.write("uses.weft", "a = Oops { }")
    done = weft("run", "uses.weft")
    assert done.status == 4
    assert "nodes/broken.py:1:" in done.stderr and "unknown-type" in done.stderr
    listed = weft("nodes")
    assert listed.status == 4
    assert "Give" in listed.stdout and "nodes/broken.py:1:" in listed.stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://127.0.0.1:1/nobody",
        "postgresql://no-such-host.invalid/x",
        "postgresql:///x?host=/nowhere-at-all",
    ],
)
def test_a_database_that_is_not_there(weft: Weft, url: str):
    refused(weft("executions", "--database-url", url), 7)
    refused(weft("run", "main.weft", "--database-url", url), 7)


def test_a_url_that_is_none(weft: Weft):
    refused(weft("executions", "--database-url", "mysql://x"), 2, "--database-url")
    refused(weft("executions", env={"WEFT_DATABASE_URL": "nonsense"}), 2, "WEFT_DATABASE_URL")


def test_a_password_is_never_shown(weft: Weft):
    done = weft("run", "main.weft", "--database-url", "postgresql://me:topsecret@127.0.0.1:1/x")
    refused(done, 7)
    assert "topsecret" not in done.stderr


def test_a_database_of_a_newer_weft(weft: Weft):
    async def age() -> None:
        connection = await asyncpg.connect(weft.url)
        await connection.execute("INSERT INTO weft.migrations (number, name, checksum) VALUES (9999, 'later', 'x')")
        await connection.close()

    asyncio.run(age())
    refused(weft("executions"), 7, "newer weft", "9999")
    refused(weft("run", "main.weft"), 7, "newer weft")


if os.geteuid() == 0:

    def test_as_root_a_disk_that_fills_up_under_a_run_is_waited_out(weft: Weft, server_folder: Path):
        disk = server_folder / "disk"
        disk.mkdir()
        server_folder.chmod(0o711)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "weft", disk], check=False).returncode != 0:
            pytest.skip("this root may not mount anything")
        own = Weft(None, weft.folder)
        own.write("weft.toml", f'{PROJECT}\n[database]\nfolder = "{disk}/pg"\n')
        large = "import os; return {'text': os.urandom(400_000).hex()}"
        own.write(
            "fills.weft",
            HOLDS
            + "".join(
                f'n{i} = ExecPython(after: String) -> (text: String) {{ after: hold.text  code: "{large}" }}\n'
                for i in range(40)
            ),
        )
        try:
            with own.started("run", "fills.weft") as process:
                until((own.folder / "begun").exists)
                filler = disk / "filler"
                with suppress(OSError), filler.open("wb") as file:
                    while True:
                        file.write(b"\0" * 65536)
                (own.folder / "release").touch()
                said: list[str] = []
                while not said or "No space left on device" not in said[-1]:
                    said.append(process.stderr.readline())
                    assert said[-1], "".join(said)
                filler.unlink()
                process.communicate(timeout=60)
            assert process.returncode == 0
            assert own("executions", "--json").values[0]["status"] == "completed"
        finally:
            subprocess.run(["umount", disk], check=True)
            disk.rmdir()


def test_a_settings_file_that_is_no_toml(weft: Weft):
    weft.write("weft.toml", "[project\n")
    refused(weft("run", "main.weft"), 2, "weft.toml")
    refused(weft("executions"), 2, "weft.toml")


def test_a_file_that_may_not_be_read(weft: Weft):
    if os.geteuid() == 0:
        # Root may read everything; a file that vanishes between look and read cannot be made here.
        (weft.folder / "loop.weft").symlink_to("loop.weft")
        refused(weft("run", "loop.weft"), 5, "loop.weft")
    else:
        path = weft.write("secret.weft", "")
        path.chmod(0)
        refused(weft("run", "secret.weft"), 4, "cannot be read")


def test_at_file_stays_inside_the_project(weft: Weft, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.txt"
    outside.write_text("secret")
    weft.write("text.txt", " verbatim \n")
    weft.write("reads.weft", 'a = Give { value: @file("text.txt") }\nshow = Show { data: a.value }')
    assert weft("run", "reads.weft").ok().stdout == " verbatim \n\n"
    (weft.folder / "link.txt").symlink_to(outside)
    for path in ("link.txt", str(outside), "../secret.txt", f"sub/../../{outside.parent.name}/secret.txt"):
        weft.write("reads.weft", f'a = Give {{ value: @file("{path}") }}')
        done = weft("run", "reads.weft")
        assert done.status == 4, path
        assert "secret" not in done.stderr.replace("secret.txt", "")
        assert "reads.weft:1:" in done.stderr


def test_a_fault_of_weft_is_one_line_and_where_to_report_it(weft: Weft, tmp_path: Path):
    weft.write("nodes/odd.py", "import sys\nsys.modules['weft.lang.compile'] = None\n")
    done = weft("check", "main.weft")
    assert done.status == 1
    assert done.stderr.startswith("error: unexpected: ")
    assert "report" in done.stderr and "Traceback" not in done.stderr
    assert "Traceback" in weft("--debug", "check", "main.weft").stderr
    assert "Traceback" in weft("check", "main.weft", env={"WEFT_DEBUG": "1"}).stderr
