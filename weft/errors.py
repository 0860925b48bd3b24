"""The error tree: what went wrong, where, and what to do about it.

Every error that a person may meet is a `WeftError` with a stable `code`, an optional `hint` (one sentence
that says what to do) and the exit status that a command ends with. A class's docstring is its default
message. Codes are unique; `tests/unit/test_errors.py` holds them to that.
"""

from __future__ import annotations

from typing import ClassVar


class WeftError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "weft"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None, run: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.hint = hint
        self.run = run

    @property
    def message(self) -> str:
        return str(self.args[0])


# --- wrong usage: exit status 2 ---------------------------------------------------------------------------


class UsageError(WeftError):
    """The command was called in a way that cannot be understood."""

    code = "usage"
    exit_status = 2


class SettingsError(UsageError):
    """A setting has a value that cannot be used."""

    code = "settings"


class SelectionRefused(UsageError):
    """The chosen part of the program cannot run by itself."""

    code = "selection"


class InvalidTag(UsageError):
    """A tag is 1 to 64 of the letters, digits, `_` and `-` of ASCII."""

    code = "invalid-tag"


# --- does not compile: exit status 4 ----------------------------------------------------------------------


class DoesNotCompile(WeftError):
    """The program does not compile."""

    code = "does-not-compile"
    exit_status = 4


class UnreadableFile(WeftError):
    """The file cannot be read as a weft program."""

    code = "unreadable-file"
    exit_status = 4


# --- not found or in conflict: exit status 5 --------------------------------------------------------------


class NotFound(WeftError):
    """There is no such thing."""

    code = "not-found"
    exit_status = 5


class Conflict(WeftError):
    """It is not in a state where this can be done."""

    code = "conflict"
    exit_status = 5


# --- the store: exit status 7 -----------------------------------------------------------------------------


class StoreUnreachable(WeftError):
    """The database cannot be reached."""

    code = "store-unreachable"
    exit_status = 7


class SchemaTooNew(StoreUnreachable):
    """The database was made by a newer weft."""

    code = "schema-too-new"


class EmbeddedServerFailed(StoreUnreachable):
    """The embedded PostgreSQL cannot be started."""

    code = "embedded-server"


# --- inside a run -----------------------------------------------------------------------------------------


class NodeError(WeftError):
    """The node failed."""

    code = "node"


class InputError(NodeError):
    """An input does not hold what the node asked of it."""

    code = "node-input"


class EmissionError(NodeError):
    """The node emitted something that it may not emit."""

    code = "node-emission"


class RunFailed(NodeError):
    """A call of `ctx.run` failed."""

    code = "node-run"

    def __init__(
        self, message: str | None = None, *, type_name: str, traceback: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.type_name = type_name
        self.traceback = traceback


class DivergedAfterCrash(NodeError):
    """The body did something else than before the crash."""

    code = "diverged-after-crash"


class FenceLost(WeftError):
    """This worker no longer owns the run."""

    code = "fence-lost"


class EventRefused(WeftError):
    """An event does not fit what the run has recorded so far."""

    code = "event-refused"


class RunEnded(Conflict):
    """The run has already ended."""

    code = "run-ended"


# --- loading nodes ----------------------------------------------------------------------------------------


class NodeFileError(WeftError):
    """A node file cannot be loaded."""

    code = "node-file"
    exit_status = 4
