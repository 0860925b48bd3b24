"""`weft` as a process, in an empty project with an empty database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.weft_process import Weft

PROJECT = """\
[project]
id = "demo-id"
name = "demo"
"""

HELLO = """\
hello = Text { value: "hello" }
show = Debug { data: hello.value }
"""


@pytest.fixture
def weft(database_url: str, tmp_path: Path) -> Weft:
    """A project called demo, with a program `main.weft` that shows hello."""
    made = Weft(database_url, tmp_path)
    made.write("weft.toml", PROJECT)
    made.write("main.weft", HELLO)
    return made
