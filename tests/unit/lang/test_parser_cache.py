"""The parser's tables on disk: read back when sound, made anew when not, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.lang import parser
from weft.lang.parsing import cache

ASK = """
from weft.lang.diagnostics import Source
from weft.lang.parser import parse
file, errors = parse(Source("x", 'a = Text { value: "x" }'))
print(len(file.items), len(errors))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, for this process and those that it starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "weft"


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def answer(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert err == ""
    return out.strip()


def test_what_is_stored_is_loaded(folder: Path) -> None:
    assert cache.load("some") is None
    cache.store("some", b"content")
    assert cache.load("some") == b"content"
    assert [file.name for file in folder.iterdir()] == ["some"], "no draft is left behind"


@pytest.mark.parametrize("damage", [lambda kept: kept[:-1], lambda kept: b"", lambda kept: b"x" + kept[1:]])
def test_what_was_damaged_is_as_good_as_absent(folder: Path, damage: object) -> None:
    cache.store("some", b"content")
    assert callable(damage)
    (folder / "some").write_bytes(damage((folder / "some").read_bytes()))
    assert cache.load("some") is None


def test_a_folder_that_cannot_be_written_is_no_trouble(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    cache.store("some", b"content")
    assert cache.load("some") is None
    assert answer(start()) == "1 0"


def test_the_first_process_keeps_the_tables_for_the_next(folder: Path) -> None:
    assert answer(start()) == "1 0"
    (kept,) = folder.iterdir()
    before = kept.stat()
    assert answer(start()) == "1 0"
    assert kept.stat().st_ino == before.st_ino, "the second had no need to write"


def test_damaged_tables_are_made_anew(folder: Path) -> None:
    assert answer(start()) == "1 0"
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    assert cache.load(kept.name) is None
    assert answer(start()) == "1 0"
    assert cache.load(kept.name) is not None


def test_tables_of_another_shape_are_made_anew(folder: Path) -> None:
    assert answer(start()) == "1 0"
    (kept,) = folder.iterdir()
    cache.store(kept.name, b"no tables at all")
    assert answer(start()) == "1 0"


def test_processes_that_start_at_once_share_one_cache(folder: Path) -> None:
    assert [answer(process) for process in [start() for _ in range(4)]] == ["1 0"] * 4
    assert len(list(folder.iterdir())) == 1
    assert answer(start()) == "1 0"


def test_another_grammar_or_another_lark_has_tables_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    name = parser._cache_name("one grammar")
    assert parser._cache_name("another grammar") != name
    monkeypatch.setattr(parser, "lark_version", "0.0.0")
    assert parser._cache_name("one grammar") != name
