"""The error tree: what went wrong, where, and what to do about it.

Every error that a person may meet is a `WeftError` with a stable `code`, an optional `hint` (one sentence
that says what to do) and the exit status that a command ends with. The first line of a class's
docstring is its default message. Codes are unique; `tests/unit/test_errors.py` holds them to that.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar


class WeftError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "weft"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None, run: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().partition("\n")[0])
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


class AnswerRefused(UsageError):
    """The answer does not fit the form.

    `fields` says what is wrong, by the key of the field; under "" stands what concerns the whole answer.
    """

    code = "answer-refused"

    def __init__(self, fields: dict[str, str], *, run: str | None = None) -> None:
        lines = [f"{key}: {reason}" if key else reason for key, reason in fields.items()]
        text = f" {lines[0]}" if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)
        super().__init__(f"the answer does not fit:{text}", run=run)
        self.fields = fields


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
    """The node failed.

    `retry=False` says that trying again would be no use, whatever the node's `retry` allows.
    """

    code = "node"
    retry: bool = True

    def __init__(
        self, message: str | None = None, *, hint: str | None = None, run: str | None = None, retry: bool | None = None
    ) -> None:
        super().__init__(message, hint=hint, run=run)
        if retry is not None:
            self.retry = retry


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
    retry = False


class WaitTimedOut(NodeError):
    """What the node waited for did not come in time."""

    code = "wait-timed-out"
    retry = False


class Parked(BaseException):
    """The firing waits for something outside of it, and its body must end here.

    Raised by `ctx.await_signal` to leave the body, which runs again from its top once the wait is over. It is
    not an `Exception`, so that `except Exception` lets it pass; do not catch it.
    """


class FenceLost(WeftError):
    """This worker no longer owns the run."""

    code = "fence-lost"


class EventRefused(WeftError):
    """An event does not fit what the run has recorded so far."""

    code = "event-refused"


class RunEnded(Conflict):
    """The run has already ended."""

    code = "run-ended"


class AlreadyAnswered(Conflict):
    """This was answered before.

    `at` is when, `by` whom or what; `value` is the answer, MISSING where the time-out or a skip ended the wait.
    """

    code = "already-answered"

    def __init__(
        self,
        message: str,
        *,
        at: datetime,
        by: str,
        value: Any,
        timed_out: bool = False,
        skipped: bool = False,
        run: str | None = None,
    ) -> None:
        super().__init__(message, run=run)
        self.at = at
        self.by = by
        self.value = value
        self.timed_out = timed_out
        self.skipped = skipped


class WaitGone(Conflict):
    """Nothing waits for this any more.

    `at` is when it ended, `reason` why; `status` is how its run ended, None where only the wait is over. `cause`
    says for programs who ended it.
    """

    code = "wait-gone"

    def __init__(
        self,
        message: str,
        *,
        at: datetime,
        reason: str,
        status: str | None = None,
        cause: dict[str, Any] | None = None,
        run: str | None = None,
    ) -> None:
        super().__init__(message, run=run)
        self.at = at
        self.reason = reason
        self.status = status
        self.cause = cause


# --- loading nodes ----------------------------------------------------------------------------------------


class NodeFileError(WeftError):
    """A node file cannot be loaded."""

    code = "node-file"
    exit_status = 4
