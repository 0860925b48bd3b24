"""What is kept of an exception: its message, its type, and a traceback of the author's own frames.

Texts come out storable: no NUL, no half surrogate pairs, and of a size that a journal can carry.
"""

from __future__ import annotations

import functools
import sysconfig
import traceback
from pathlib import Path
from typing import Any, Final

import weft
from weft.data import data_folder
from weft.errors import NodeError

LONGEST_MESSAGE: Final = 8_000
LONGEST_TRACEBACK: Final = 20_000
"""In characters; what is longer loses its middle."""

_PACKAGE: Final = str(Path(weft.__file__).parent) + "/"
_CATALOG: Final = _PACKAGE + "_data/"
_OTHERS: Final = tuple(
    sorted(
        {f"{path}/" for name in ("stdlib", "platstdlib", "purelib", "platlib") if (path := sysconfig.get_path(name))}
    )
)


def failure_of(error: BaseException) -> dict[str, Any]:
    """`{"message", "type"}` and, where there are any, the error's `"hint"` and the `"traceback"` of author's code.

    An exception with a `traceback` text of its own (a failure that came from somewhere else) keeps that one.
    What a node of the catalog says of its inputs or outputs has none: the message is for whoever uses the
    node, and the catalog's lines are not.
    """
    failure = {
        "message": storable_text(_message(error), LONGEST_MESSAGE),
        "type": getattr(error, "type_name", None) or type(error).__name__,
    }
    hint = getattr(error, "hint", None)
    if isinstance(hint, str):
        failure["hint"] = storable_text(hint, LONGEST_MESSAGE)
    own = getattr(error, "traceback", None)
    text = own if isinstance(own, str) else None if _said_by_catalog(error) else own_traceback(error)
    if text:
        failure["traceback"] = storable_text(text, LONGEST_TRACEBACK)
    return failure


def is_worth_another_try(error: BaseException) -> bool:
    """Whether a node's `retry` covers this failure: any but a cancellation and what says `retry=False`."""
    return isinstance(error, Exception) and not (isinstance(error, NodeError) and not error.retry)


def own_traceback(error: BaseException) -> str | None:
    """The traceback with its causes, without the frames of weft and of libraries; None if none is left."""
    try:
        whole = traceback.TracebackException.from_exception(error, compact=True)
    except RecursionError:
        return None
    if not _trim(whole, set()):
        return None
    return "".join(whole.format()).rstrip("\n")


def storable_text(text: str, longest: int) -> str:
    """The text as the database can keep it; what cannot be kept is shown as U+FFFD, a middle too long as `…`."""
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _said_by_catalog(error: BaseException) -> bool:
    """Whether a node of the catalog detected it, and did not stumble over it."""
    if not isinstance(error, NodeError):
        return False
    own = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    catalog = f"{data_folder('catalog')}/"
    return bool(own) and all(filename.startswith(catalog) for filename in own)


def _message(error: BaseException) -> str:
    try:
        if isinstance(error, KeyError | SystemExit):
            return f"{type(error).__name__}: {error}"
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def _trim(shown: traceback.TracebackException, seen: set[int]) -> bool:
    """Leave the author's own frames alone; whether there are any, here or in what caused it."""
    if id(shown) in seen:
        return False
    seen.add(id(shown))
    shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if _is_own(frame.filename)])
    found = bool(shown.stack)
    related = [shown.__cause__, None if shown.__suppress_context__ else shown.__context__]
    related += getattr(shown, "exceptions", None) or []
    for each in related:
        if each is not None:
            found |= _trim(each, seen)
    return found


@functools.lru_cache(maxsize=1024)
def _is_own(filename: str) -> bool:
    if filename.startswith("<frozen"):
        return False
    if filename.startswith(_PACKAGE):
        return filename.startswith(_CATALOG)
    return not filename.startswith(_OTHERS)
