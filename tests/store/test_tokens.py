"""API tokens: shown once, found by their hash, limited, and gone once revoked."""

from __future__ import annotations

import hashlib

import pytest

from tests.store.world import World
from weft.errors import NotFound, UsageError
from weft.store import tokens


async def test_a_token_is_shown_once_and_kept_as_its_hash(world: World) -> None:
    async with world.db.connection() as conn:
        token, text = await tokens.mint(conn, "of the bot", world.project, ["run", "read"])
        [row] = await conn.fetch("SELECT * FROM tokens")
        assert row["hash"] == hashlib.sha256(text.encode()).digest()
        assert text not in str(dict(row))
        assert await tokens.check(conn, text) == token
        assert await tokens.every(conn) == [token]
    assert text.startswith("weft_")
    assert len(text) > 40
    assert (token.name, token.project, token.rights) == ("of the bot", world.project, ("read", "run"))


async def test_it_is_good_for_its_project_and_its_rights(world: World) -> None:
    async with world.db.connection() as conn:
        one, _ = await tokens.mint(conn, "one", world.project, ["read"])
        every, _ = await tokens.mint(conn, "every", None, ["read", "stop"])
    assert one.allows("read", world.project)
    assert not one.allows("read", world.project + 1)
    assert not one.allows("stop", world.project)
    assert every.allows("stop", world.project + 1)
    assert not every.allows("answer", world.project)


async def test_a_revoked_one_lets_nobody_in_and_stays_listed(world: World) -> None:
    async with world.db.connection() as conn:
        token, text = await tokens.mint(conn, "a", None, ["read"])
        _, other = await tokens.mint(conn, "b", None, ["read"])
        assert await tokens.revoke(conn, token.id)
        assert not await tokens.revoke(conn, token.id)
        assert await tokens.check(conn, text) is None
        assert await tokens.check(conn, other) is not None
        revoked, _ = await tokens.every(conn)
        assert revoked.revoked_at is not None
        assert not revoked.allows("read", world.project)
        with pytest.raises(NotFound):
            await tokens.revoke(conn, 999)


@pytest.mark.parametrize("text", ["", "weft_", "é", "\udcff", "x" * 10_000])
async def test_what_is_no_token_is_none(world: World, text: str) -> None:
    async with world.db.connection() as conn:
        await tokens.mint(conn, "a", None, ["read"])
        assert await tokens.check(conn, text) is None


@pytest.mark.parametrize("rights", [[], ["read", "everything"]])
async def test_rights_are_named_and_known(world: World, rights: list[str]) -> None:
    async with world.db.connection() as conn:
        with pytest.raises(UsageError):
            await tokens.mint(conn, "a", None, rights)
        assert await tokens.every(conn) == []


async def test_one_may_be_for_the_runs_of_one_tag(world: World) -> None:
    async with world.db.connection() as conn:
        minted, text = await tokens.mint(conn, "one sender", world.project, ["read"], tag="sender_7")
        plain, _ = await tokens.mint(conn, "all", world.project, ["read"])
        found = await tokens.check(conn, text)
    assert (minted.tag, plain.tag) == ("sender_7", None) and found == minted
