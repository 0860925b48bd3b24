"""Which file and line of a node file a complaint is about. Read only when there is a complaint."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

from weft.errors import NodeFileError

FUNCTION_ATTRIBUTE = "__weft_function__"
"""Where the class made of an `@node` function keeps that function."""


def node_file_error(node: type, part: Sequence[str], message: str, hint: str | None = None) -> NodeFileError:
    """The error for a part of a node class, such as `("Inputs", "sender")`, with its file and line."""
    file = file_of(node)
    return at(file, line_of(node, part, file), message, hint)


def at(file: Path | None, line: int, message: str, hint: str | None = None) -> NodeFileError:
    return NodeFileError(f"{shown(file)}:{line}: {message}", hint=hint)


def shown(file: Path | None) -> str:
    """A path as short as it can be said: from the current folder, where the file is below it."""
    if file is None:
        return "<unknown>"
    try:
        return str(file.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(file)


def file_of(node: type) -> Path | None:
    module = sys.modules.get(node.__module__)
    path = getattr(module, "__file__", None)
    return None if path is None else Path(path)


def line_of(node: type, part: Sequence[str], file: Path | None) -> int:
    """The line of the innermost part that can be found; 1 where the file cannot be read."""
    if file is None:
        return 1
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 1
    function = getattr(node, FUNCTION_ATTRIBUTE, None)
    if function is not None:
        names = [*_plain_names(function.__qualname__), *part[1:]]
    else:
        names = [*_plain_names(node.__qualname__), *part]
    line = 1
    inside: ast.AST = tree
    for name in names:
        found = next((each for each in _named(inside) if each[0] == name), None)
        if found is None:
            break
        inside, line = found[1], found[1].lineno
    return line


def _plain_names(qualname: str) -> list[str]:
    return [name for name in qualname.split(".") if name != "<locals>"]


def _named(tree: ast.AST) -> list[tuple[str, ast.stmt | ast.arg]]:
    """What a module, class or function names directly inside itself."""
    found: list[tuple[str, ast.stmt | ast.arg]] = []
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = tree.args
        found += [(each.arg, each) for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    for each in getattr(tree, "body", ()):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((each.name, each))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.append((each.target.id, each))
        elif isinstance(each, ast.Assign):
            found += [(target.id, each) for target in each.targets if isinstance(target, ast.Name)]
    return found
