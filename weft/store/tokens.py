"""API tokens: what a program shows to be let in. Shown once, kept as a hash, good for a project and some rights.

Not the tokens of waits, which each lead to one form or webhook: those are `runs/waits.py`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from weft.errors import NotFound, UsageError
from weft.store.pool import Connection
from weft.store.sql import load

_SQL = load(__name__)

RIGHTS: Final = ("read", "answer", "run", "stop", "configure")

_PREFIX: Final = "weft_"
"""So that a token that lies about somewhere is known for what it is."""

_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Token:
    """`project` None: all projects; `tag` None: all runs, else those that carry it. A token that was revoked lets
    nobody in and stays listed."""

    id: int
    name: str
    project: int | None
    tag: str | None
    rights: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None

    def allows(self, right: str, project: int) -> bool:
        return self.revoked_at is None and right in self.rights and self.project in (None, project)


async def mint(
    conn: Connection, name: str, project: int | None, rights: Sequence[str], *, tag: str | None = None
) -> tuple[Token, str]:
    """A new token, and its text, which nobody can tell again. Raises `UsageError` for no right or an unknown one."""
    unknown = [right for right in rights if right not in RIGHTS]
    if unknown:
        raise UsageError(f"there is no right {unknown[0]!r}", hint=f"the rights are {', '.join(RIGHTS)}")
    if not rights:
        raise UsageError("a token without a right is of no use", hint=f"the rights are {', '.join(RIGHTS)}")
    text = _PREFIX + secrets.token_urlsafe(_BYTES)
    in_order = [right for right in RIGHTS if right in rights]
    row = await conn.fetchrow(_SQL.add, _hash(text), name, project, tag, in_order)
    return _token(row), text


async def every(conn: Connection) -> list[Token]:
    """All tokens there ever were, in the order in which they were made."""
    return [_token(row) for row in await conn.fetch(_SQL.all)]


async def revoke(conn: Connection, number: int) -> bool:
    """From now on it lets nobody in. False: it was revoked before. Raises `NotFound`."""
    if await conn.execute(_SQL.revoke, number) == "UPDATE 1":
        return True
    if not await conn.fetchval(_SQL.exists, number):
        raise NotFound(f"there is no token {number}")
    return False


async def check(conn: Connection, text: str) -> Token | None:
    """The token of that text, or None where there is none or it was revoked."""
    row = await conn.fetchrow(_SQL.find, _hash(text))
    return None if row is None else _token(row)


def _token(row: Any) -> Token:
    number, name, project, tag, rights, created_at, revoked_at = row
    return Token(number, name, project, tag, tuple(rights), created_at, revoked_at)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
