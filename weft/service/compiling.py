"""From a path that a person typed to a checked program.

Finds the program file, reads it and what it names with `@file`, and compiles it with the nodes of its project. Not
here: the compiler (`weft.lang`), and finding the project (`projects.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from weft.errors import DoesNotCompile, NodeError, NotFound, UnreadableFile
from weft.lang.diagnostics import Diagnostic, Source
from weft.lang.graph import Program
from weft.service.projects import LoadedProject

MAX_PROGRAM_BYTES = 16 * 2**20
"""Far above the largest program that anybody would write: 20,000 nodes take about 3 MB."""

ENTRY_FILES = ("src/main.weft", "main.weft")


@dataclass(frozen=True, slots=True)
class Checked:
    """A program file and what the compiler said of it; `program` is None when there are errors.

    Diagnostics name their files as a person in the current folder would.
    """

    path: Path
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        return sum(each.severity == "error" for each in self.diagnostics)


def entry_file(path: Path) -> Path:
    """The program that a path means: itself, or a folder's `src/main.weft` or `main.weft`.

    Raises:
        NotFound: there is nothing at that path.
        UnreadableFile: a folder without a program, or neither a file nor a folder.
    """
    if path.is_dir():
        for name in ENTRY_FILES:
            if (path / name).is_file():
                return path / name
        raise UnreadableFile(
            f"{path} has no program: neither {ENTRY_FILES[0]} nor {ENTRY_FILES[1]} is there",
            hint="Name a .weft file, or make a project with: weft new NAME",
        )
    if not path.exists():
        raise NotFound(f"{path} does not exist", hint="Name a .weft file, or a folder that holds src/main.weft.")
    if not path.is_file():
        raise UnreadableFile(f"{path} is neither a file nor a folder")
    return path


def read_text(path: Path) -> str:
    """The text of a file, which must be UTF-8 (a byte order mark is dropped) and not too large.

    Raises:
        UnreadableFile: too large, not text, or not readable.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(MAX_PROGRAM_BYTES + 1) if size <= MAX_PROGRAM_BYTES else b""
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be read: {error.strerror}") from None
    if size > MAX_PROGRAM_BYTES or len(data) > MAX_PROGRAM_BYTES:
        raise UnreadableFile(
            f"{path} is {max(size, len(data)):,} bytes; at most {MAX_PROGRAM_BYTES:,} are read",
            hint="Is this a weft program? Large data belongs into a file that a node reads.",
        )
    nul = data.find(b"\0")
    if nul >= 0:
        raise UnreadableFile(f"{path} is not text: it holds a NUL byte at offset {nul}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"{path} is not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}",
            hint="Save the file as UTF-8.",
        ) from None


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """What `@file` may read: files inside one project's folder, by their path from it."""

    root: Path

    def read(self, path: str) -> str:
        """The text of a file.

        Raises:
            ValueError: the path is not one inside the project, as it is spelled or as it resolves.
            OSError: it cannot be read.
            UnicodeDecodeError: it is not UTF-8 text.
        """
        windows = PureWindowsPath(path)
        if not path or "\0" in path or windows.drive or windows.root or ".." in windows.parts:
            raise ValueError("the path must stay inside the project: relative to its folder, without `..`")
        root = self.root.resolve()
        resolved = (root / path).resolve()
        if not resolved.is_relative_to(root):
            raise ValueError("the path leads outside the project")
        if resolved.stat().st_size > MAX_PROGRAM_BYTES:
            raise ValueError(f"the file is larger than {MAX_PROGRAM_BYTES:,} bytes")
        return resolved.read_bytes().decode("utf-8")


def check(file: Path, project: LoadedProject) -> Checked:
    """Compile a program file with its project's nodes.

    Raises:
        UnreadableFile: there is no program text to compile.
    """
    from weft.lang.compile import compile_source

    root = project.project.root
    relative = os.path.relpath(file.resolve(), root.resolve()).replace(os.sep, "/")
    # The name is stored with the program, and the store takes only what is UTF-8.
    name = os.fsencode(relative).decode("utf-8", "replace")
    source = Source(name, read_text(file))
    compiled = compile_source(source, project.registry, ProjectFiles(root))
    diagnostics = tuple(replace(each, file=as_typed(root / each.file)) for each in compiled.diagnostics)
    return Checked(file, compiled.program, diagnostics)


def child_program(project: LoadedProject, path: str, inputs: Mapping[str, Mapping[str, Any]]) -> Program:
    """The program at a path from the project's root, for a run that starts it. `inputs` are values for its inputs,
    `{node: {port: value}}`, each as if it were written there.

    Raises:
        NodeError: no such program, it does not compile, or an input does not take its value.
    """
    from weft.lang.compile import GivenRefused, compile_source

    files = ProjectFiles(project.project.root)
    try:
        text = files.read(path)
    except UnicodeDecodeError:
        raise NodeError(f"the program {path} is not UTF-8 text", retry=False) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = f"the path starts at {project.project.root}"
        raise NodeError(f"the program {path} cannot be read: {reason}", hint=hint, retry=False) from None
    except ValueError as error:
        raise NodeError(f"the program {path} cannot be read: {error}", retry=False) from None
    try:
        compiled = compile_source(Source(path, text.removeprefix("\ufeff")), project.registry, files, inputs)
    except GivenRefused as error:
        raise NodeError(f"the program {path} cannot be started so: {error}", retry=False) from None
    errors = [each for each in compiled.diagnostics if each.severity == "error"]
    if compiled.program is None:
        shown = "\n".join(each.render() for each in errors[:5])
        raise NodeError(f"the program {path} does not compile:\n{shown}", retry=False)
    if not compiled.program.nodes:
        raise NodeError(f"the program {path} has no nodes: there is nothing to run", retry=False)
    return compiled.program


def as_typed(path: Path) -> str:
    """A path as a person in the current folder would type it: relative if it is below, else absolute."""
    relative = os.path.relpath(path)
    return str(path.resolve()) if relative.startswith("..") else relative


def required_program(checked: Checked) -> Program:
    """The program to start.

    Raises:
        DoesNotCompile: there are errors, or the file has no nodes and so nothing to run.
    """
    if checked.program is None:
        count = checked.errors
        raise DoesNotCompile(f"{as_typed(checked.path)} does not compile: {count} error{'s' if count != 1 else ''}")
    if not checked.program.nodes:
        raise DoesNotCompile(
            f"{as_typed(checked.path)} has no nodes: there is nothing to run",
            hint='A first program: text = Text { value: "hello" }  show = Debug { data: text.value }',
        )
    return checked.program


def programs_below(folder: Path) -> list[Path]:
    """Every `.weft` file below a folder, hidden folders left out, in order of their paths."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += [Path(parent, name) for name in sorted(files) if name.endswith(".weft")]
    return found
