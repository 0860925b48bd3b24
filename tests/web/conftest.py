"""`weft` as a process in a small project (from the tests of the command line), whose folder the house serves too."""

from __future__ import annotations

from tests.cli.conftest import weft

__all__ = ["weft"]
