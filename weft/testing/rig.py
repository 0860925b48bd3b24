"""`Rig`: runs a node's body in a test, with the real context in front and plain lists behind it.

Not here: one run of a body (`firing.py`), and how its waits end (`signals.py`).
"""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from weft.lang.graph import MISSING
from weft.nodes.api import Node, node_class
from weft.nodes.execution import StopSelf
from weft.nodes.firing.held import close_http_client
from weft.testing.firing import Firing
from weft.testing.outcome import Outcome, StartedRun
from weft.testing.server import Answer, Request, Server
from weft.testing.signals import Signals


class Rig:
    """One run of one node after another. `execution_tags` and `stops` gather over all of them."""

    def __init__(self) -> None:
        self.execution_id = str(uuid4())
        self.project_id = "test"
        self.execution_tags: list[list[str]] = []
        """The tags of each `tag_execution` call."""
        self.stops: list[tuple[str, StopSelf]] = []
        """Each stop that was asked for."""
        self.started_runs: list[StartedRun] = []
        """What each `start_run` asked for."""
        self._server: Server | None = None
        self._crashes: list[int] = []
        self._cancelled = False
        self._signals = Signals()
        self._firing: Firing | None = None

    async def run(
        self,
        node: type[Node] | Callable[..., Any],
        inputs: Mapping[str, Any] | None = None,
        *,
        outputs: Mapping[str, Any] | Sequence[str] = (),
        wired: Iterable[str] | None = None,
        value_limit: int | None = None,
    ) -> Outcome:
        """Run a body to its end.

        `inputs` holds the values on the inputs, `weft.testing.CLOSED` for a wire that closed; what is left
        out is not wired and gets its default. `outputs` are those that the program would declare, with
        their types where given; `wired` names the outputs that something hangs on (all). A failure of the
        node is in the outcome. Raises ValueError for inputs that no program could bring about, and
        AssertionError for HTTP requests that nothing was prepared for.
        """
        firing = Firing(self, node_class(node), dict(inputs or {}), outputs, wired, value_limit)
        self._firing = firing
        try:
            outcome = await firing.run(self._crashes, self._signals)
        finally:
            self._firing = None
            self._cancelled = False
            await close_http_client()
        self._demand_matched()
        return outcome

    def start(self, node: type[Node] | Callable[..., Any], *args: Any, **options: Any) -> asyncio.Task[Outcome]:
        """As `run`, in a task of its own, so that the test can do something meanwhile: `rig.cancel()`."""
        return asyncio.get_running_loop().create_task(self.run(node, *args, **options))

    def cancel(self) -> None:
        """Stop the body that runs, as `weft stop` would; with none, the next one before it begins."""
        self._cancelled = True
        if self._firing is not None:
            self._firing.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    def crash_after(self, effects: int) -> None:
        """Let the process die in the next run, and the body run again with what was saved until then.

        It dies when the `effects`-th effect of the firing is stored and before the call returns: an
        emission, an early closing, tags, a stop, an outcome of `ctx.run`, a child run, a wait that is registered.
        A body with fewer dies after its last line, before its end is stored. Repeat the call for more than one
        crash.
        """
        if effects < 1:
            raise ValueError("a crash comes after at least one effect")
        self._crashes.append(effects)

    # --- waits --------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The rig's own time, which timers and time-outs go by. Nothing but them moves it, or a test that sets it."""
        return self._signals.now

    @now.setter
    def now(self, instant: datetime) -> None:
        self._signals.now = instant

    def signal(self, payload: Any = None, *, to: int | None = None) -> None:
        """Queue what ends the next wait of a body for something from outside.

        For a form the answers, which must fit it; for a webhook the body of the request, or a `WebhookRequest`;
        for a run what became of it, `{"status": "completed"}` or with a `"reason"`. Where the body waits for
        several, it goes to the first that takes a signal, or to number `to`, counted from 0. Timers need none: when
        nothing is queued the time goes on to where the next one fires, or the wait times out.
        """
        self._signals.queue(payload, to)

    def skip(self) -> None:
        """Queue that a person skips the next form: the firing ends as skipped."""
        self._signals.queue_skip()

    def time_out(self) -> None:
        """Queue that nothing comes: the time goes on to where the wait times out, or a timer in it fires."""
        self._signals.queue_time_out()

    # --- http ---------------------------------------------------------------------------------------------

    def respond(
        self,
        method: str,
        path: str,
        *,
        status: int = 200,
        json: Any = MISSING,
        text: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Let the rig's server answer requests of this method and path (without query); the whole URL.

        Several answers to one request are given in turn, the last one from then on. A request that nothing
        was prepared for gets status 501 and fails the test.
        """
        body, kind = b"", None
        if json is not MISSING:
            body, kind = json_module.dumps(json, ensure_ascii=False).encode(), "application/json"
        elif text is not None:
            body, kind = text.encode(), "text/plain; charset=utf-8"
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if kind is not None:
            given.setdefault("content-type", kind)
        self._serving().prepare(method, path, Answer(status, given, body))
        return self.url + path

    @property
    def url(self) -> str:
        """Where the rig's server listens, without a path."""
        return self._serving().url

    @property
    def requests(self) -> list[Request]:
        """The requests that came to the rig's server."""
        return self._serving().requests

    def close(self) -> None:
        """End the server. Raises AssertionError for requests that nothing was prepared for."""
        if self._server is not None:
            self._server.close()
            self._demand_matched()

    def _serving(self) -> Server:
        if self._server is None:
            self._server = Server()
        return self._server

    def _demand_matched(self) -> None:
        if self._server is not None and self._server.unmatched:
            names = ", ".join(f"{each.method} {each.path}" for each in self._server.unmatched)
            self._server.unmatched.clear()
            raise AssertionError(f"nothing was prepared for {names}: call rig.respond before the run")
