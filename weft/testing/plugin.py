"""The pytest plugin. Loaded in every pytest run of an environment with weft in it, so it imports next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weft.testing.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    """Runs a node's body in the test: `outcome = await rig.run(MyNode, {"input": "value"})`."""
    from weft.testing.rig import Rig

    rig = Rig()
    yield rig
    rig.close()
