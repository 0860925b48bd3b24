"""A run by what a person typed: its whole id, or a beginning or ending of it that only one run has.

Beginnings are found by index among all runs. Endings are looked for among the newest runs alone, and the message of a
search that found nothing says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from weft.errors import Conflict, NotFound, UsageError
from weft.store.pool import Connection, Database
from weft.store.runs import listing
from weft.store.runs.listing import RunKey, RunRow

SHORTEST = 4
HINTED = 8
"""Hints show so much of an id's end: ids begin with the time, so runs of one hour begin alike."""

CANDIDATES = 10
NEWEST = 200_000
"""How many runs a search by ending looks through, over all projects; each project gets at least `FEWEST` of them."""
FEWEST = 1_000

_LENGTHS = (8, 4, 4, 4, 12)


def short(run: UUID | str) -> str:
    """The end of an id, as hints show it."""
    return str(run)[-HINTED:]


async def find_run(database: Database, piece: str) -> RunRow:
    """The one run whose id is, begins with or ends with this.

    Raises:
        UsageError: shorter than 4 characters, or characters that no id has.
        NotFound: no run has it.
        Conflict: several have it; the message lists them.
    """
    async with database.connection() as connection:
        [run] = await _find(connection, [piece])
        return run


async def find_runs(database: Database, pieces: Sequence[str]) -> list[RunRow]:
    """The same for several, in order, each run once."""
    async with database.connection() as connection:
        found = await _find(connection, pieces)
    return list({run.run: run for run in found}.values())


async def _find(connection: Connection, pieces: Sequence[str]) -> list[RunRow]:
    cleaned = [_clean(piece) for piece in pieces]
    projects = [project.id for project in await listing.all_projects(connection)]
    whole = [UUID(piece) for piece in cleaned if _is_whole(piece)]
    existing = {key.run: key for key in await listing.whole_ids(connection, projects, whole)} if whole else {}
    keys: list[RunKey] = []
    for piece in cleaned:
        if _is_whole(piece):
            key = existing.get(UUID(piece))
            if key is None:
                raise NotFound(f"no run has the id {piece}", hint="weft executions lists runs.")
            keys.append(key)
        else:
            keys.append(await _one(connection, projects, piece))
    return await listing.rows(connection, keys)


async def _one(connection: Connection, projects: Sequence[int], piece: str) -> RunKey:
    among = max(FEWEST, NEWEST // max(1, len(projects)))
    found: dict[RunKey, None] = {}
    bounds = _bounds(piece)
    if bounds is not None:
        found.update(dict.fromkeys(await listing.between(connection, projects, *bounds, CANDIDATES + 1)))
    ending = _as_ending(piece)
    if ending is not None:
        ended_so = await listing.ending_with(connection, projects, ending, among, CANDIDATES + 1)
        found.update(dict.fromkeys(ended_so))
    if not found:
        raise NotFound(
            f"no run has an id that begins or ends with {piece}",
            hint=f"weft executions lists runs. Endings are looked for among the newest {among:,} of a project.",
        )
    if len(found) > 1:
        rows = await listing.rows(connection, list(found)[:CANDIDATES])
        lines = [f"  {row.run}  {row.status}  {row.entry}" for row in rows]
        if len(found) > CANDIDATES:
            lines.append("  …")
        raise Conflict(
            f"several runs have an id that begins or ends with {piece}:\n" + "\n".join(lines),
            hint="Give more of the id.",
        )
    return next(iter(found))


def _clean(piece: str) -> str:
    cleaned = piece.strip().lower()
    if not cleaned or re.fullmatch(r"[0-9a-f-]+", cleaned) is None or len(cleaned) > 36:
        raise UsageError(
            f"{piece!r} is no run id nor a piece of one", hint="weft executions lists runs with their ids."
        )
    if len(cleaned.replace("-", "")) < SHORTEST:
        raise UsageError(f"{piece!r} is too short: give at least {SHORTEST} characters of the id")
    return cleaned


def _is_whole(piece: str) -> bool:
    return len(piece.replace("-", "")) == 32 and (len(piece) == 32 or _dashed(piece.replace("-", "")) == piece)


def _dashed(digits: str) -> str:
    """Up to 32 digits with dashes where an id has them."""
    parts, at = [], 0
    for length in _LENGTHS:
        if at < len(digits):
            parts.append(digits[at : at + length])
        at += length
    return "-".join(parts)


def _bounds(piece: str) -> tuple[UUID, UUID] | None:
    """The least and the greatest id that begin so, or None where none can."""
    digits = piece.replace("-", "")
    if len(digits) > 32 or ("-" in piece and not _dashed(digits).startswith(piece.rstrip("-"))):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _as_ending(piece: str) -> str | None:
    """How an id that ends so is spelled, or None where none can."""
    digits = piece.replace("-", "")
    if len(digits) > 32:
        return None
    spelled = _dashed("0" * (32 - len(digits)) + digits)
    ending = spelled[_start_of_last(spelled, len(digits)) :]
    return ending if "-" not in piece or piece.lstrip("-") == ending else None


def _start_of_last(spelled: str, digits: int) -> int:
    """Where the last so many digits of an id begin."""
    seen = 0
    for at in range(len(spelled) - 1, -1, -1):
        seen += spelled[at] != "-"
        if seen == digits:
            return at
    return 0
