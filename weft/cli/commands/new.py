"""`weft new`: a project to begin with. Its program runs, its node is used, its test passes."""

from __future__ import annotations

import json as jsonlib
import re
import secrets
from pathlib import Path

from weft.cli.output import Output, note
from weft.cli.shell import COMPLETED
from weft.errors import Conflict, UsageError

_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 8

_SETTINGS = """\
[project]
# The same id is the same project, in any folder and on any host: keep it when you copy or move the folder.
id = {id}
name = {name}

# Where runs are stored. Without it: the embedded PostgreSQL of this user.
# [database]
# url = "postgresql://user:password@localhost:5432/weft"
"""

_PROGRAM = """\
# Run it: weft run .

greeting = Text { value: "hello" }
loud = Shout { text: greeting.value }
show = Debug { data: loud.value }
"""

_NODE = '''\
"""Nodes of this project: every class or @node function in this folder is a node type."""

from weft import node


@node
async def shout(text: str) -> str:
    """Uppercase a text."""
    return text.upper()
'''

_TEST = '''\
"""Run it in the project's folder: `pip install pytest pytest-asyncio`, then `pytest`. The `rig` comes with weft."""

from nodes.shout import shout


async def test_shouts(rig):
    outcome = await rig.run(shout, {"text": "hello"})
    assert outcome.outputs == {"value": "HELLO"}
'''

_PYTEST = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
pythonpath = .
"""

_IGNORED = """\
__pycache__/
*.pyc
.pytest_cache/
.venv/
"""


def new(name: str, json: bool) -> int:
    """Make the folder.

    Raises:
        UsageError: the name cannot be one.
        Conflict: there is something already.
    """
    out = Output(json=json)
    folder = Path(name)
    project = "" if "\0" in name else folder.resolve().name
    if not name.strip() or not project or len(project) > 100 or re.search(r"[\x00-\x1f\x7f]", name):
        raise UsageError(f"{name!r} cannot be the name of a project")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict(f"{name} is there already and is not empty", hint="Choose another name.")
    identity = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    files = {
        "weft.toml": _SETTINGS.format(id=_toml(identity), name=_toml(project)),
        "src/main.weft": _PROGRAM,
        "nodes/shout.py": _NODE,
        "tests/test_shout.py": _TEST,
        "pytest.ini": _PYTEST,
        ".gitignore": _IGNORED,
    }
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    if json:
        out.value({"folder": str(folder.resolve()), "id": identity, "name": project, "files": list(files)})
    else:
        for path in files:
            out.line(str(folder / path))
        note(f"hint: weft run {name}")
    return COMPLETED


def _toml(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's."""
    return jsonlib.dumps(text, ensure_ascii=False)
