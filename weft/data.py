"""Where the files that travel beside the code are: the grammar and the catalog.

In an installed weft they lie under `weft/_data/`; in a checkout, at its top. Nothing else belongs here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: Literal["grammar", "catalog"]) -> Path:
    """The folder of that name, as it is installed or else as it stands in the checkout.

    Raises `FileNotFoundError` where neither is there.
    """
    for folder in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"weft's folder `{name}` is missing beside {_PACKAGE}: install weft again")
