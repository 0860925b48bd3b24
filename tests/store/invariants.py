"""After any test that wrote to the store, no rule of `weft.store.doctor` may be broken.

await check_invariants(conn)
"""

from __future__ import annotations

from typing import Any

from weft.store.doctor import findings


async def check_invariants(conn: Any) -> None:
    """Raises AssertionError that names the broken rules and shows rows that break them."""
    broken = [finding async for finding in findings(conn)]
    assert not broken, "\n".join(f"{each.rule.says}: {each.run} {each.detail}" for each in broken[:5])
