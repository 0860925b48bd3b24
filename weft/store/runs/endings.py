"""Ends many trees, in chunks: none is spared because another cannot be ended, and no lock is held for long.

One tree is one transaction and belongs to `scopes.py`. Every function here takes the database, not a
connection, and opens a transaction for each chunk; doing the same twice, or in two processes at once, ends
nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from weft.log import get_logger
from weft.store.pool import CONNECTION_LOST, Database
from weft.store.runs import scopes
from weft.store.runs.scopes import Ended, Ending

CHUNK: Final = 1000
"""Trees in one transaction: no lock stands longer than some 50 ms, and the cost a run is that of one big statement."""

log = get_logger("weft.store")


@dataclass(slots=True)
class Report:
    """What was ended, and the runs that could not be, each with the error."""

    ended: list[Ended] = field(default_factory=list)
    failed: list[tuple[UUID, Exception]] = field(default_factory=list)


async def end_runs(db: Database, project: int, runs: Sequence[UUID], reason: str, cause: Mapping[str, Any]) -> Report:
    """Cancels the runs and all below them. Raises `StoreUnreachable`; what was ended until then stays ended."""
    ending = Ending("cancelled", reason, cause)
    report = Report()
    for at in range(0, len(runs), CHUNK):
        await end_chunk(db, project, runs[at : at + CHUNK], ending, report)
    return report


async def end_chunk(db: Database, project: int, runs: Sequence[UUID], ending: Ending, report: Report) -> None:
    """Ends the trees in one transaction; where that fails, each half by itself, down to the one that is at fault."""
    try:
        async with db.transaction() as conn:
            ended = await scopes.end_trees(conn, project, runs, ending)
    except CONNECTION_LOST:
        raise
    except Exception as error:
        if len(runs) == 1:
            log.warning("a run could not be ended", run=str(runs[0]), error=str(error))
            report.failed.append((runs[0], error))
            return
        middle = len(runs) // 2
        await end_chunk(db, project, runs[:middle], ending, report)
        await end_chunk(db, project, runs[middle:], ending, report)
    else:
        report.ended += ended
