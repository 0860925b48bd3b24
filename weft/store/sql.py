"""Loads the SQL that stands beside a module, cut at its `-- name: x` headers.

No SQL is written here and none is put together from pieces: a statement goes to the server as it stands in
its file.
"""

from __future__ import annotations

import re
from importlib import resources

_HEADER = re.compile(r"^-- name: (\w+)[ \t]*\n", re.MULTILINE)


class Queries:
    """The named statements of one file, as attributes."""

    def __init__(self, statements: dict[str, str], source: str) -> None:
        self._statements = statements
        self._source = source

    def __getattr__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._source} has no statement named {name}") from None


def parse(text: str, source: str) -> Queries:
    """Cuts a file's text at its headers. Raises ValueError for a name that stands twice, or for none at all."""
    parts = _HEADER.split(text)
    names, bodies = parts[1::2], parts[2::2]
    if not names:
        raise ValueError(f"{source} has no '-- name: x' header")
    statements: dict[str, str] = {}
    for name, body in zip(names, bodies, strict=True):
        if name in statements:
            raise ValueError(f"{source} names {name} twice")
        statements[name] = body.strip()
    return Queries(statements, source)


def load(module: str) -> Queries:
    """The statements for the module of that dotted name (its `__name__`): `weft.store.runs.tags` has `tags.sql`."""
    package, _, stem = module.rpartition(".")
    file = f"{stem}.sql"
    return parse(resources.files(package).joinpath(file).read_text(encoding="utf-8"), file)
