"""`weft test-node`: a node's own tests, run with pytest."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from weft.cli.output import note
from weft.cli.shell import COMPLETED, FAILED
from weft.errors import NotFound, WeftError
from weft.lang.diagnostics import nearest
from weft.service.compiling import as_typed
from weft.service.projects import load_project


def test_node(name: str, arguments: list[str]) -> int:
    loaded = load_project(Path())
    file = loaded.registry.file_of(name)
    if file is None:
        likely = nearest(name, loaded.registry.names())
        broken = ", ".join(str(each) for each in loaded.registry.problems)
        hint = f"Did you mean {likely}?" if likely else "weft nodes lists them."
        raise NotFound(f"there is no node type {name}" + (f" ({broken})" if broken else ""), hint=hint)
    if importlib.util.find_spec("pytest") is None:
        raise WeftError("pytest is not installed", hint="Install it: pip install pytest pytest-asyncio")
    root = loaded.project.root
    places = [file.with_name(f"test_{file.name}"), root / "tests" / f"test_{file.name}"]
    tests = [str(place) for place in places if place.is_file()]
    if not tests:
        looked = " or ".join(as_typed(place) for place in dict.fromkeys(places))
        raise NotFound(f"{name} has no tests", hint=f"Write them in {looked}.")
    note(f"pytest {' '.join([as_typed(Path(each)) for each in tests] + arguments)}", "dim")
    # Two files of one name, beside the node and in `tests`, are fine with this import mode alone.
    command = [sys.executable, "-m", "pytest", "--import-mode=importlib", *tests, *arguments]
    return FAILED if subprocess.run(command, cwd=root, check=False).returncode else COMPLETED
