"""`weft check`: every diagnostic of programs at once; and how `weft run` shows what the compiler said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.cli.output import Output, note
from weft.cli.shell import report
from weft.errors import DoesNotCompile, NotFound, WeftError
from weft.service import compiling
from weft.service.compiling import Checked
from weft.service.projects import LoadedProject, load_project
from weft.settings import project_of

NODE_FILE = "node-file"
"""The slug of what is wrong with a node file, among the diagnostics of `--json`."""


def check(files: Sequence[Path], json: bool) -> int:
    out = Output(json=json)
    paths = list(files) or _programs_here()
    loaded: dict[Path, LoadedProject] = {}
    errors = warnings = status = 0
    for path in paths:
        try:
            file = compiling.entry_file(path)
            root = project_of(file).root
            first_of_project = root not in loaded
            if first_of_project:
                loaded[root] = load_project(file)
            checked = compiling.check(file, loaded[root])
        except WeftError as error:
            status = max(status, report(error))
            continue
        if first_of_project:
            show_broken_nodes(loaded[root], out, to_stdout=json)
        show_diagnostics(checked, out, to_stdout=True)
        errors += checked.errors
        warnings += len(checked.diagnostics) - checked.errors
        if checked.program is not None and not checked.program.nodes:
            note(f"{compiling.as_typed(checked.path)} has no nodes")
    out.flush()
    if not json:
        note(f"{_count(len(paths), 'program')}: {_count(errors, 'error')}, {_count(warnings, 'warning')}")
    return DoesNotCompile.exit_status if errors else status


def _programs_here() -> list[Path]:
    root = project_of(Path()).root
    inside = (root / "weft.toml").is_file()
    found = compiling.programs_below(root) if inside else sorted(Path().glob("*.weft"))
    if not found:
        raise NotFound("there is no .weft file here", hint="Name a file, or make a project with: weft new NAME")
    return found


def show_broken_nodes(loaded: LoadedProject, out: Output, *, to_stdout: bool) -> None:
    """Node files that could not be loaded. Other nodes are fine, and so are programs without these."""
    for problem in loaded.registry.problems:
        if out.json and to_stdout:
            out.value({"severity": "warning", "slug": NODE_FILE, "message": str(problem), "hint": problem.hint})
        else:
            note(f"warning: node file {problem}", "yellow")
            if problem.hint:
                note(f"  hint: {problem.hint}")


def show_diagnostics(checked: Checked, out: Output, *, to_stdout: bool) -> None:
    for diagnostic in checked.diagnostics:
        if out.json and to_stdout:
            out.value(diagnostic.to_json())
        elif to_stdout:
            out.line(diagnostic.render(), "red" if diagnostic.severity == "error" else "yellow")
        else:
            note(diagnostic.render(), "red" if diagnostic.severity == "error" else "yellow")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
