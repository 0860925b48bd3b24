"""From the process's arguments to its exit status: every error becomes one message here, and nothing else does.

| status | means |
|---|---|
| 0 · 1 · 3 | completed · failed · cancelled |
| 2 · 4 | wrong usage · does not compile |
| 5 · 6 · 7 | not found or in conflict · parked, or not ended in time · store unreachable |
| 130 | interrupted while following |
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

import typer
import typer.main

from weft.cli.output import note, paint, prepare_streams, silence
from weft.errors import StoreUnreachable, UsageError, WeftError

COMPLETED, FAILED, CANCELLED, NOT_FOUND, NOT_ENDED, INTERRUPTED = 0, 1, 3, 5, 6, 130

LAST_WAIT = 1.0
"""Seconds that tasks have to end when the command has."""

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})

ENDINGS = {"completed": COMPLETED, "failed": FAILED, "cancelled": CANCELLED}


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command and say what went wrong, if anything did; the exit status."""
    prepare_streams()
    stdout = sys.stdout
    try:
        status = _invoke(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:
        silence(stdout)
        return COMPLETED
    try:
        if stdout is not None:
            stdout.flush()
    except BrokenPipeError:
        silence(stdout)
    except OSError as error:
        silence(stdout)
        return report(error)
    return status


def _invoke(arguments: list[str]) -> int:
    try:
        from weft.cli.app import app

        command = typer.main.get_command(app)
        status = command.main(arguments or ["--help"], prog_name="weft", standalone_mode=False)
        return status if isinstance(status, int) else COMPLETED
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, asyncio.CancelledError, typer.Abort):
        note("interrupted")
        return INTERRUPTED
    except Exception as error:
        return report(error)
    except SystemExit as error:
        # From a task that a body made: asyncio lets it through, and its number is no status of ours.
        return report(WeftError(f"a node ended the process (SystemExit: {error})"))


def drive(work: Coroutine[Any, Any, int]) -> int:
    """Run a command's work to its exit status. A node's task that stays, whatever it is told, is left behind."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        if runner.run(_tell_the_rest()):
            runner.close()
        else:
            # Closing would wait for it for ever, and the interpreter's end would complain of it.
            runner.get_loop().set_exception_handler(lambda *_: None)


async def _tell_the_rest() -> bool:
    """Cancel what still runs; whether it ended."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    return not rest or not (await asyncio.wait(rest, timeout=LAST_WAIT))[1]


def report(error: Exception) -> int:
    """Say on stderr what went wrong and what to do; the exit status."""
    known = _known(error)
    if known is None:
        return _report_unexpected(error)
    if debugging():
        _print_traceback(error)
    note(f"{paint('error:', 'red', sys.stderr)} {known.message}")
    if known.hint:
        note(f"hint: {known.hint}")
    return known.exit_status


def debugging() -> bool:
    return bool(os.environ.get("WEFT_DEBUG"))


def _known(error: Exception) -> WeftError | None:
    """The error that a person can act on, if this is or holds one."""
    for leaf in _leaves(error):
        if isinstance(leaf, WeftError):
            return leaf
    for leaf in _leaves(error):
        found = _usage(leaf) or _database(leaf) or _file(leaf)
        if found is not None:
            return found
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _usage(error: BaseException) -> UsageError | None:
    """What typer raises for options and arguments. Its class has no public name, so it is known by what it can do."""
    formatted = getattr(error, "format_message", None)
    if formatted is None or not hasattr(error, "exit_code"):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "weft"
    return UsageError(str(formatted()).rstrip("."), hint=f"{path} --help says what it takes.")


def _database(error: BaseException) -> StoreUnreachable | None:
    """A connection that broke, or a refusal by the server (its disk is full, a right is missing)."""
    if getattr(error, "sqlstate", None):
        return StoreUnreachable(f"the database refused: {getattr(error, 'message', error)}", hint=_server_hint(error))
    driver = type(error).__module__.startswith("asyncpg")
    if driver or isinstance(error, ConnectionError):
        return StoreUnreachable(
            f"the connection to the database was lost: {error or type(error).__name__}",
            hint="What was saved is safe; run the command again when the database is back.",
        )
    return None


def _server_hint(error: BaseException) -> str | None:
    hint = getattr(error, "hint", None)
    return hint if isinstance(hint, str) else None


def _file(error: BaseException) -> WeftError | None:
    if isinstance(error, OSError) and error.filename is not None:
        return WeftError(f"{os.fsdecode(error.filename)}: {error.strerror}")
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return WeftError(f"the output cannot be written: {error.strerror}")
    return None


def _report_unexpected(error: Exception) -> int:
    if debugging():
        _print_traceback(error)
    inner = next(_leaves(error))
    summary = f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__
    note(f"{paint('error:', 'red', sys.stderr)} unexpected: {summary}")
    if not debugging():
        note(
            "hint: This is a fault of weft. Please report it to the project with the traceback that WEFT_DEBUG=1 shows."
        )
    return FAILED


def _print_traceback(error: Exception) -> None:
    import traceback

    note("".join(traceback.format_exception(error)).rstrip())
