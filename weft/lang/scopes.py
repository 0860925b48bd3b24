"""What needs a whole scope: names declared twice, keys written twice, values for what is not declared, type names."""

from __future__ import annotations

from weft.lang.diagnostics import Diagnostic
from weft.lang.syntax import File


def check_scopes(file: File, errors: list[Diagnostic], lost: set[str]) -> None:
    pass
