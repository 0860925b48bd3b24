"""Log lines of the process: on stderr, from the chosen level on, structlog loaded with the first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
from weft import log

logger = log.get_logger("weft.test")
log.choose({form!r}, {level!r}, colour=False)
assert "structlog" not in sys.modules
logger.info("for later", run="r1")
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("it broke", node="n")
logger.warning("careful")
"""


def written(form: str, level: str) -> list[str]:
    code = SCRIPT.format(form=form, level=level)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_where_nobody_looks():
    info, error, warning = map(json.loads, written("auto", "info"))
    assert (info["event"], info["run"], info["level"], info["logger"]) == ("for later", "r1", "info", "weft.test")
    assert error["node"] == "n" and "ZeroDivisionError" in error["exception"]
    assert warning["level"] == "warning"


def test_the_level_holds():
    assert [json.loads(line)["event"] for line in written("json", "error")] == ["it broke"]


def test_a_console_for_people():
    lines = written("console", "warning")
    assert "it broke" in lines[0] and "ZeroDivisionError: division by zero" in "\n".join(lines)
    assert "\x1b" not in "".join(lines)
