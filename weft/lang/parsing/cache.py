"""Bytes kept on disk between processes, in the user's cache folder.

A cache is never needed: what cannot be read, or was damaged, is as good as absent, and what cannot be written is not.
Several processes may write the same entry at once, since each puts a whole file in place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import platformdirs

_DIGEST = hashlib.sha256().digest_size


def load(name: str) -> bytes | None:
    """What `store` kept under this name, byte for byte, or None."""
    try:
        kept = (_folder() / name).read_bytes()
    except OSError:
        return None
    content = kept[_DIGEST:]
    return content if kept[:_DIGEST] == hashlib.sha256(content).digest() else None


def store(name: str, content: bytes) -> None:
    with contextlib.suppress(OSError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, draft = tempfile.mkstemp(dir=folder, prefix=f"{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            Path(draft).replace(folder / name)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise


def _folder() -> Path:
    return platformdirs.user_cache_path("weft")
