"""Why a run does not go on: what it waits for and since when, what will wake it, whether anybody could take it up, and
what a stop would do. Reads only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from weft.errors import NotFound
from weft.service.listing import RunRow, refreshed, workers_of
from weft.store.pool import Database
from weft.store.runs import listing, waiting
from weft.store.runs.listing import RunKey
from weft.store.runs.waiting import TreeRun
from weft.store.runs.waits import Kind, Wait

TIMED: frozenset[Kind] = frozenset({"timer", "retry"})
"""Waits that end by time alone."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that a parked firing waits for. Of several with one `group` the first ends all, or (`all_of`) each must
    end. `due` is when a timer or a rest is over, and when anything else times out."""

    run: UUID
    node: str
    frames: tuple[int | str, ...]
    kind: Kind
    token: str
    since: datetime
    due: datetime | None
    spec: Mapping[str, Any]
    group: tuple[UUID, str, str, int]
    all_of: bool
    alone: bool
    target: UUID | None

    @property
    def path(self) -> str | None:
        """Where `weft serve` takes its answer, below its address."""
        return {"form": f"/f/{self.token}", "webhook": f"/w/{self.token}"}.get(self.kind)

    @property
    def title(self) -> str | None:
        title: str | None = self.spec.get("title")
        return title

    @property
    def attempt(self) -> int | None:
        """Of a rest: the number of the try that failed."""
        return -self.group[3] if self.kind == "retry" else None


@dataclass(frozen=True, slots=True)
class Why:
    """`below` are the live runs below it, `waits` what it and they wait for, the longest waiting first; `elsewhere` are
    live runs outside of its tree that it waits for. `running` are the firings of the run itself that neither wait nor
    have ended. `workers` are alive and claim the project's runs."""

    run: RunRow
    here: TreeRun
    below: tuple[TreeRun, ...]
    waits: tuple[Waiting, ...]
    elsewhere: frozenset[UUID]
    running: tuple[tuple[str, tuple[int | str, ...]], ...]
    workers: tuple[int, ...]

    @property
    def own_waits(self) -> tuple[Waiting, ...]:
        return tuple(each for each in self.waits if each.run == self.run.run)

    @property
    def parked(self) -> bool:
        """Neither the run nor one below it can go on by itself now."""
        return not self.run.ended and all(each.status == "waiting" for each in (self.here, *self.below))

    @property
    def by_time_alone(self) -> bool:
        """Whether everything that it waits for comes without anybody outside: times, and runs below it."""
        return all(each.kind in TIMED or (each.target and each.target not in self.elsewhere) for each in self.waits)

    @property
    def forms(self) -> tuple[Waiting, ...]:
        return tuple(each for each in self.waits if each.kind == "form")


async def why(database: Database, run: RunRow) -> Why:
    """How it stands with a run.

    Raises:
        NotFound: it has been deleted meanwhile.
    """
    row = await refreshed(database, run)
    async with database.connection() as connection:
        tree = await waiting.tree(connection, row.project, row.run)
        if not tree:
            raise NotFound(f"run {row.run} is gone: it was deleted")
        live = [each.run for each in tree]
        found = [] if row.ended else await waiting.waits_of(connection, row.project, live)
        others = {each.target for each in found if each.target is not None} - set(live)
        targets = await listing.rows(connection, [RunKey(row.project, each) for each in others])
    row = await refreshed(database, row)
    parked = {(each.node, tuple(json.loads(each.frames))) for each in found if each.run == row.run}
    opened = [(str(node), tuple(frames)) for node, *frames in json.loads(tree[0].open_firings)]
    return Why(
        row,
        tree[0],
        tuple(tree[1:]),
        tuple(_waiting(found)),
        frozenset(each.run for each in targets if not each.ended),
        tuple(firing for firing in opened if firing not in parked),
        tuple(await workers_of(database, row.project)),
    )


def _waiting(found: Sequence[Wait]) -> list[Waiting]:
    groups = [(each.run, each.node, each.frames, each.call) for each in found]
    return [
        Waiting(
            each.run,
            each.node,
            tuple(json.loads(each.frames)),
            each.kind,
            each.token,
            each.registered_at,
            each.due,
            json.loads(each.spec),
            group,
            each.mode == "all",
            groups.count(group) == 1,
            each.target,
        )
        for each, group in zip(found, groups, strict=True)
    ]
