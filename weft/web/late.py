"""Tokens that lead to no open wait: what became of them is read from a run's journal, and not more often than needed.

What has ended stays so, and is remembered. A token that no wait ever had is looked for in the journal of the run that
it claims, again and again if somebody guesses; of each run that is done so often a minute, and then only what is open
is found.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, TypeVar

from weft import clock
from weft.errors import AlreadyAnswered, NotFound, WaitGone
from weft.rules.waits import run_of
from weft.service import waits
from weft.service.opening import Store
from weft.web.refusals import Refused, forget_traceback

REMEMBERED: Final = 2_000
LARGEST_REMEMBERED: Final = 4_096
"""Characters of an answer that is remembered; a larger one is read again."""

GUESSES: Final = 20
"""How many unknown tokens of one run are looked for in its journal in a `SPAN`."""

SPAN: Final = timedelta(minutes=1)

T = TypeVar("T")


class Late:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._over: OrderedDict[str, AlreadyAnswered | WaitGone] = OrderedDict()
        self._guesses: OrderedDict[str, tuple[datetime, int]] = OrderedDict()

    async def ask(self, token: str, work: Callable[[], Awaitable[T]]) -> T:
        """Does what concerns the wait of a token, and remembers how it failed.

        Raises:
            AlreadyAnswered, WaitGone, NotFound: as `work` does, maybe without asking it again.
            Refused: 429, too many unknown tokens of this run.
        """
        try:
            run_of(token)
        except ValueError as error:
            raise NotFound(str(error)) from None
        if (over := self._over.get(token)) is not None:
            raise forget_traceback(over)
        if self._guessed(token) and not await waits.is_open(self._store, token):
            raise Refused(429, "too-many", "too many unknown tokens of this run", None, {"retry-after": "60"})
        try:
            return await work()
        except (AlreadyAnswered, WaitGone) as error:
            if isinstance(error, WaitGone) or len(repr(error.value)) <= LARGEST_REMEMBERED:
                _keep(self._over, token, error)
            raise
        except NotFound:
            since, count = self._guesses.get(token[:32], (clock.now(), 0))
            _keep(self._guesses, token[:32], (since, count + 1))
            raise

    def _guessed(self, token: str) -> bool:
        since, count = self._guesses.get(token[:32], (clock.now(), 0))
        if clock.now() - since > SPAN:
            del self._guesses[token[:32]]
            return False
        return count >= GUESSES


def _keep(kept: OrderedDict[str, T], key: str, value: T) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
