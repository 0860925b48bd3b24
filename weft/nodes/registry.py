"""Every node type there is: the catalog's and a project's, found by reading their folders.

A file that cannot be loaded is a problem of its own and hides no other. Not here: what makes a class a good
node type (`spec.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from inspect import getattr_static
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from weft.data import data_folder
from weft.errors import NodeFileError
from weft.lang.metadata import NodeSpec
from weft.nodes.api import NODE_ATTRIBUTE, Node
from weft.nodes.reading.spec import spec_of
from weft.nodes.reading.whereabouts import at, node_file_error, shown

_loads = count()


class _Entry(NamedTuple):
    spec: NodeSpec
    node: type[Node]
    file: Path


class Registry:
    """Node types by name; `problems` are the errors of what could not be loaded, in the order met."""

    def __init__(self) -> None:
        self.problems: list[NodeFileError] = []
        self._entries: dict[str, _Entry] = {}

    @classmethod
    def load(cls, folders: Sequence[Path] = ()) -> Registry:
        """The catalog and the nodes in `*.py` of these folders, such as a project's `nodes`.

        Files that begin with `_` or `test_` are left alone; a node file may import them relatively. A folder
        that is not there holds no nodes.
        """
        registry = cls()
        load = next(_loads)
        families = sorted(path for path in data_folder("catalog").iterdir() if path.is_dir())
        for at_folder, folder in enumerate((*families, *folders)):
            registry._load_folder(folder, f"weft_nodes_{load}_{at_folder}")
        return registry

    def spec(self, type_name: str) -> NodeSpec | None:
        """What the compiler knows of a node type, or None: there is none."""
        entry = self._entries.get(type_name)
        return None if entry is None else entry.spec

    def names(self) -> list[str]:
        """The node types in alphabetical order."""
        return sorted(self._entries)

    def node_class(self, type_name: str) -> type[Node] | None:
        """The class whose body runs, or None: there is no such type."""
        entry = self._entries.get(type_name)
        return None if entry is None else entry.node

    def file_of(self, type_name: str) -> Path | None:
        """Where a node type is written."""
        entry = self._entries.get(type_name)
        return None if entry is None else entry.file

    # --- loading ------------------------------------------------------------------------------------------

    def _load_folder(self, folder: Path, package_name: str) -> None:
        files = sorted(
            path for path in folder.glob("*.py") if not path.name.startswith(("_", "test_")) and path.is_file()
        )
        if not files:
            return
        package = ModuleType(package_name)
        package.__path__ = [str(folder)]
        sys.modules[package_name] = package
        for file in files:
            self._load_file(file.resolve(), f"{package_name}.{file.stem}")

    def _load_file(self, file: Path, module_name: str) -> None:
        try:
            module = _execute(file, module_name)
        except NodeFileError as problem:
            self.problems.append(problem)
            return
        for node in _nodes_of(module):
            try:
                self._add(node, file)
            except NodeFileError as problem:
                self.problems.append(problem)
            except Exception as error:
                # Flags and ports are values of the author's, of any kind.
                said = f"{node.__name__} is not declared as a node can be: {type(error).__name__}: {error}"
                self.problems.append(node_file_error(node, (), said))

    def _add(self, node: type[Node], file: Path) -> None:
        spec = spec_of(node)
        other = self._entries.get(spec.type)
        if other is not None:
            raise node_file_error(
                node,
                (),
                f"there is a node type {spec.type} already, in {shown(other.file)}",
                "give one of them another name",
            )
        self._entries[spec.type] = _Entry(spec, node, file)


def _nodes_of(module: ModuleType) -> Iterator[type[Node]]:
    """The node types that a module itself defines; a class with a leading underscore is a base."""
    found = [getattr_static(value, NODE_ATTRIBUTE, value) for value in vars(module).values()]
    for made in dict.fromkeys(each for each in found if isinstance(each, type)):
        if issubclass(made, Node) and made.__module__ == module.__name__ and not made.__name__.startswith("_"):
            yield made


def _execute(file: Path, module_name: str) -> ModuleType:
    spec = spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise at(file, 1, "the file cannot be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        sys.modules.pop(module_name, None)
        where = file if error.filename is None else Path(error.filename)
        raise at(where, error.lineno or 1, f"this is not Python: {error.msg}") from error
    except NodeFileError:
        sys.modules.pop(module_name, None)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.modules.pop(module_name, None)
        raise _failed(file, error) from error
    return module


def _failed(file: Path, error: BaseException) -> NodeFileError:
    import traceback

    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    line = (lines[-1] if lines else 1) or 1
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "install it where weft is installed" if isinstance(error, ModuleNotFoundError) else None
    return at(file, line, f"the file cannot be loaded: {said}", hint)
