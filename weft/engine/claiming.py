"""Taking runs that nobody drives: claim, fold, go on.

A worker that claims takes any run of its projects; one that does not takes back only what it started itself: runs that
were waiting meanwhile, or that it lost when its process was held up for longer than its lease.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from uuid import UUID

from weft.engine.executor import Execution, Host
from weft.engine.programs import ProjectCode
from weft.engine.retrying import retrying
from weft.flow.events import ExecutionStarted, decode
from weft.flow.state import RunState
from weft.lang.graph import Program
from weft.log import get_logger
from weft.store.pool import Connection, Database
from weft.store.runs import programs, runs, scopes, snapshots
from weft.store.runs.runs import Claimed, Fence
from weft.store.runs.scopes import Ended, Ending
from weft.store.runs.snapshots import Kept, Snapshot

MAKE_ROOM = 0.005
"""Seconds in which runs may end before more are claimed, where there are more than a worker takes at once."""

EVENTS_AT_ONCE = 20_000
"""How many events of several runs are read in one statement."""

MOST_DEATHS = 5
"""As many workers may die while they drive one run, without its coming any further; then it fails."""

SNAPSHOT_EVERY = 500
"""Events. A run that parks with more of them since the last snapshot gets a new one."""

log = get_logger("weft.worker")


class Claimer:
    def __init__(
        self,
        database: Database,
        host: Host,
        worker: UUID,
        projects: Mapping[int, ProjectCode],
        driven: Mapping[UUID, Execution],
        *,
        concurrency: int,
        claims: bool,
        taken: Callable[[Execution, Fence], None],
        resumed: Callable[[UUID], None],
        told: Callable[[Sequence[Ended]], None],
    ) -> None:
        """`driven` are the runs that this process drives; `taken` is called with each that is taken, before it goes on,
        `resumed` once it does; `told` with what had to be ended."""
        self.claims = claims
        self.own: set[UUID] = set()
        self._database = database
        self._host = host
        self._worker = worker
        self._projects = projects
        self._driven = driven
        self._concurrency = concurrency
        self._taken = taken
        self._resumed = resumed
        self._told = told
        self._programs: dict[tuple[int, str], Program] = {}
        self._wake = asyncio.Event()
        self._starting = 0
        self._unsure = False
        self._suspects = False
        self._suspect: UUID | None = None

    def look(self) -> None:
        """There may be something to claim now."""
        self._wake.set()

    def look_for_suspects(self) -> None:
        """There may be a run that kills who drives it."""
        self._suspects = True
        self._wake.set()

    async def run(self) -> None:
        """Claim until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (self.claims or self.own) and (free := self._concurrency - len(self._driven)) > 0:
                claimed = await retrying(self._database, partial(self._claim, limit=free))
                for some in _readable_at_once(claimed):
                    await self.resume(some)
                if len(claimed) < free:
                    break
                # There are more than there is room for: ask once a while for as many as ended, not for each.
                await asyncio.sleep(MAKE_ROOM)
            if self._suspects and (self.claims or self.own):
                await self._take_suspect()

    async def _take_suspect(self) -> None:
        """Takes one run under whose drivers several died, and no other such beside it: should this process die too, it
        is that one. What went on beside it when it died has not come further either, and is not to be blamed."""
        self._suspects = False
        if self._suspect in self._driven:
            return
        for each in await retrying(self._database, partial(self._claim, limit=1, suspects=True)):
            self._suspect = each.run
            if each.deaths >= MOST_DEATHS:
                await self._fail(Fence(each.project, each.run, self._worker, each.lease), await self._obituary(each))
            else:
                await self.resume([each])

    async def _obituary(self, claimed: Claimed) -> str:
        status = await retrying(self._database, lambda c: runs.open_firings(c, claimed.project, claimed.run))
        nodes = ", ".join(dict.fromkeys(node for node, *_ in json.loads(status)))
        return (
            f"{claimed.deaths} workers died one after another while they drove this run; these nodes were under way: "
            f"{nodes or 'none'}. Does one of them end its process, or take all the memory?"
        )

    async def _claim(self, connection: Connection, limit: int, suspects: bool = False) -> list[Claimed]:
        if self._unsure and not self._starting:
            await self._give_back_unknown(connection)
        unsure, self._unsure = self._unsure, True
        only = None if self.claims else list(self.own)
        claimed = await runs.claim(connection, self._worker, list(self._projects), limit, only, suspects=suspects)
        self._unsure = unsure
        return claimed

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Around a start. One that breaks off may have left a run that is ours and that nobody drives."""
        self._starting += 1
        try:
            yield
        except BaseException:
            self.unsure()
            raise
        finally:
            self._starting -= 1

    def unsure(self, run: UUID | None = None) -> None:
        """The answer to a claim or a start was lost: what it took is given back. `run` is known to be one of those."""
        self._unsure = True
        if run is not None and not self.claims:
            self.own.add(run)
        self.look()

    async def _give_back_unknown(self, connection: Connection) -> None:
        """What is given back is claimed anew, under the next lease number, so that not even a start that is under way
        here can drive it twice."""
        owned = await runs.owned(connection, self._worker)
        if self._starting:
            return
        lost = [each for each in owned if each.run not in self._driven]
        await runs.release(connection, [Fence(each.project, each.run, self._worker, each.lease) for each in lost])
        self._unsure = False

    async def resume(self, claimed: Sequence[Claimed]) -> None:
        """Fold the journals of runs over their programs and go on with them."""
        keys = [(each.project, each.run) for each in claimed]
        kept = await retrying(self._database, partial(snapshots.resume, keys=keys))
        for each in claimed:
            # What was claimed while this worker began to leave is given back as it signs off.
            if self.claims or self.own:
                await self._go_on(each, kept.pop(each.run))
            # What goes on already has its turn between two folds.
            await asyncio.sleep(0)

    async def _go_on(self, claimed: Claimed, stored: Kept) -> None:
        code = self._projects[claimed.project]
        fence = Fence(claimed.project, claimed.run, self._worker, claimed.lease)
        kept, rows = stored.snapshot, stored.rows
        try:
            program = await self._program(claimed.project, claimed.program)
            events = [decode(event) for row in rows for event in json.loads(row.events)]
            next_seq = claimed.next_seq
            if kept is None:
                first = events[0]
                assert isinstance(first, ExecutionStarted)
                execution = Execution(self._host, code.ready(program, first.selection), code.key, first.selection)
            else:
                state = json.loads(kept.state)
                ready = code.ready(program, state["selection"])
                execution = Execution(self._host, ready, code.key, state["selection"])
                execution.state = RunState.restore(ready.plan, state["fold"])
                execution.snapshot_after = kept.after
                events = events[kept.after + 1 - rows[0].first :] if rows else []
            self._taken(execution, fence)
            execution.replay(fence, events, next_seq)
            self._resumed(claimed.run)
        except Exception as error:
            log.exception("a run cannot be resumed", run=str(claimed.run))
            await self._fail(fence, f"the run cannot be resumed: {error}")

    async def _fail(self, fence: Fence, reason: str) -> None:
        async def fail(connection: Connection) -> list[Ended]:
            async with connection.transaction():
                ending = Ending("failed", reason, {"kind": "unreadable"})
                return await scopes.end_trees(connection, fence.project, [fence.run], ending)

        self._told(await retrying(self._database, fail))

    async def _program(self, project: int, program_hash: str) -> Program:
        key = (project, program_hash)
        program = self._programs.get(key)
        if program is None:
            text = await retrying(self._database, lambda c: programs.get(c, project, program_hash))
            if text is None:
                raise LookupError(f"program {program_hash} is not in the store")
            program = self._programs[key] = Program.from_text(text)
        return program

    async def keep_snapshot(self, execution: Execution) -> None:
        """A run with a long journal has just parked: keep its state, so that a wake does not fold all of it."""
        fence = execution.owned()
        after = execution.next_seq - 1
        if after - execution.snapshot_after <= SNAPSHOT_EVERY:
            return
        state = json.dumps(
            {"selection": execution.selection, "fold": execution.state.snapshot()},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        )
        await retrying(self._database, lambda c: snapshots.put(c, fence, Snapshot(after, state)))


def _readable_at_once(claimed: Sequence[Claimed]) -> Iterator[list[Claimed]]:
    """Runs in groups whose journals may be in memory together."""
    group: list[Claimed] = []
    events = 0
    for each in claimed:
        if group and events + each.next_seq > EVENTS_AT_ONCE:
            yield group
            group, events = [], 0
        group.append(each)
        events += each.next_seq
    if group:
        yield group
