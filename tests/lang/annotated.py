"""Reads annotated weft files: what the compiler should say stands in comments, on the line it should say it of.

    show = Debug { data: a.valu }     # error[unknown-source-port]: no output `valu`

Several on one line are separated by ` & `. `#file NAME: TEXT` gives the project a file; `\\n` in it is a line end,
`\\0` a NUL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from weft.lang.diagnostics import Diagnostic

_EXPECTED = re.compile(r"(error|warning)\[([a-z-]+)\](?:: (.*))?")


class Expected(NamedTuple):
    line: int
    severity: str
    slug: str
    part: str


@dataclass(frozen=True)
class Annotated:
    text: str
    expected: list[Expected]
    files: dict[str, str]


def read(path: Path) -> Annotated:
    text = path.read_text("utf-8")
    expected: list[Expected] = []
    files: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#file "):
            name, _, content = line.removeprefix("#file ").partition(": ")
            files[name] = content.replace("\\n", "\n").replace("\\0", "\0")
            continue
        _, mark, comment = line.rpartition("#")
        if not mark:
            continue
        for each in comment.split(" & "):
            found = _EXPECTED.fullmatch(each.strip())
            if found is not None:
                expected.append(Expected(number, found[1], found[2], found[3] or ""))
    return Annotated(text, expected, files)


def unmet(expected: list[Expected], found: list[Diagnostic]) -> list[str]:
    """What was expected and not said, and what was said and not expected, as lines for a person."""
    rest = list(found)
    missing = []
    for each in expected:
        for diagnostic in rest:
            same_place = (diagnostic.line, diagnostic.severity, diagnostic.slug) == each[:3]
            if same_place and each.part in f"{diagnostic.message} | {diagnostic.hint}":
                rest.remove(diagnostic)
                break
        else:
            missing.append(f"missing:    {each.line}: {each.severity}[{each.slug}]: {each.part}")
    return missing + [f"unexpected: {diagnostic.render()}" for diagnostic in rest]
