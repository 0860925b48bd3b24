"""Looking after a database: deleting what ended long ago, checking the rules that hold always, API tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from weft.rules.tags import check
from weft.service.opening import Store
from weft.store import doctor, tokens
from weft.store.doctor import Finding
from weft.store.runs import retention
from weft.store.runs.listing import ProjectRow
from weft.store.runs.retention import Doomed
from weft.store.tokens import RIGHTS, Token

__all__ = [
    "RIGHTS",
    "Doomed",
    "Finding",
    "Token",
    "check_token",
    "clean",
    "every_token",
    "findings",
    "mint",
    "revoke",
    "would_go",
]


async def would_go(store: Store, projects: Sequence[ProjectRow], keep: timedelta) -> list[Doomed]:
    """What `clean` would delete now, by project."""
    async with store.database.connection() as connection:
        return await retention.count(connection, [each.id for each in projects], keep)


async def clean(store: Store, project: ProjectRow, keep: timedelta) -> int:
    """Delete the project's runs of trees that ended longer ago than `keep`; how many it were. In batches, each by
    itself: what was deleted before an interruption is gone, the rest is there."""
    return await retention.delete(store.database, project.id, keep)


async def findings(store: Store) -> AsyncIterator[Finding]:
    """Every row of the database that breaks one of the rules that hold always."""
    async with store.database.connection() as connection:
        async for finding in doctor.findings(connection):
            yield finding


async def mint(
    store: Store, name: str, project: int | None, rights: Sequence[str], *, tag: str | None = None
) -> tuple[Token, str]:
    """A new token for a project's number (None: all) and, with a tag, for the runs that carry it alone; and its
    text, which nobody can tell again.

    Raises:
        UsageError: no right, or one that does not exist.
        InvalidTag: the tag cannot be one.
    """
    if tag is not None:
        check([tag])
    async with store.database.connection() as connection:
        return await tokens.mint(connection, name, project, rights, tag=tag)


async def every_token(store: Store) -> list[Token]:
    """All tokens there ever were, in the order in which they were made."""
    async with store.database.connection() as connection:
        return await tokens.every(connection)


async def revoke(store: Store, number: int) -> bool:
    """Let a token open nothing any more. False: it was revoked before.

    Raises:
        NotFound: there is none of that number.
    """
    async with store.database.connection() as connection:
        return await tokens.revoke(connection, number)


async def check_token(store: Store, text: str) -> Token | None:
    """The token of that text, or None where it opens nothing."""
    async with store.database.connection() as connection:
        return await tokens.check(connection, text)
