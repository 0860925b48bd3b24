"""What the compiler tells a person: severity, slug, message, place and hint.

Places: a `Span` is two offsets in code points into a `Source`, end exclusive. Lines and columns count from 1,
in code points, and are computed only when a diagnostic is made. What lives elsewhere: which diagnostics there are
(`parsing/`, `resolve/`, `check/`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

_LONGEST_SHOWN: Final = 400
"""A message about a line of a megabyte does not repeat it."""

Severity = Literal["error", "warning"]


class Span(NamedTuple):
    """Two offsets in code points, the end exclusive."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(self.start, other.end)


@dataclass(slots=True)
class Source:
    """A text with a name: `path` is how a person would name the file."""

    path: str
    text: str
    _starts: list[int] = field(default_factory=list, repr=False)

    def _line_starts(self) -> list[int]:
        if not self._starts:
            starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = find("\n", at + 1)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset."""
        starts = self._line_starts()
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its end."""
        starts = self._line_starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def shown(self, number: int) -> str:
        """The line as it is shown under a message: nothing where it is too long for that."""
        starts = self._line_starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.line(number) if end - starts[number - 1] <= _LONGEST_SHOWN else ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `line` and `column` count from 1 in code points; the end is exclusive."""

    severity: Severity
    slug: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source_line: str = ""
    hint: str | None = None

    @classmethod
    def at(
        cls,
        source: Source,
        span: Span,
        slug: str,
        message: str,
        *,
        hint: str | None = None,
        severity: Severity = "error",
    ) -> Diagnostic:
        line, column = source.position(span.start)
        end_line, end_column = source.position(max(span.end, span.start))
        return cls(
            severity, slug, message, source.path, line, column, end_line, end_column, source.shown(line), hint
        )

    def render(self) -> str:
        """As a compiler prints it: place, slug and message, the line, a caret, the hint."""
        head = f"{self.file}:{self.line}:{self.column}: {self.severity}[{self.slug}]: {self.message}"
        shown = self.source_line.replace("\t", " ")
        width = self.end_column - self.column if self.end_line == self.line else len(shown) - self.column + 1
        lines = [head]
        if shown.strip():
            lines += [f"  {shown}", "  " + " " * (self.column - 1) + "^" * max(1, width)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "end_line": self.end_line,
            "end_column": self.end_column,
            "severity": self.severity,
            "slug": self.slug,
            "message": self.message,
            "hint": self.hint,
        }


def edit_distance(a: str, b: str, limit: int = 2) -> int:
    """Levenshtein distance, or `limit + 1` as soon as it is certain to be larger."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (x != y)))
        if min(current) > limit:
            return limit + 1
        previous = current
    return previous[-1]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to this one, at an edit distance of at most 2 (and less than its own length)."""
    best, best_distance = None, min(3, len(name))
    for candidate in known:
        distance = edit_distance(name, candidate)
        if distance < best_distance or (distance == best_distance == 1 and best is None):
            best, best_distance = candidate, distance
    return best
