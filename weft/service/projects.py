"""A project with its node code: what compiling and running need of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.nodes.registry import Registry
from weft.settings import Project, project_of

NODES_FOLDER = "nodes"


@dataclass(frozen=True, slots=True)
class LoadedProject:
    """A project and the node types that its programs can use: the catalog's and its own."""

    project: Project
    registry: Registry


def load_project(path: Path) -> LoadedProject:
    """The project of a file or folder, its node files loaded; those that cannot be are `registry.problems`."""
    project = project_of(path)
    return LoadedProject(project, Registry.load([project.root / NODES_FOLDER]))
