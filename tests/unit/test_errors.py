"""The error tree: a code of its own for every class, and a message for a person."""

from __future__ import annotations

import inspect
import re

from weft import errors
from weft.errors import WeftError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, WeftError)]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.__dict__.get("code") for kind in CLASSES]
    assert None not in codes
    assert len(set(codes)) == len(codes) > 10
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", str(code)) for code in codes)


def test_every_error_says_a_sentence_when_nothing_is_said() -> None:
    for kind in CLASSES:
        message = (kind.__doc__ or "").strip().splitlines()[0]
        assert message.endswith("."), kind
        assert message[0].isupper(), kind


def test_a_message_a_hint_and_a_run_are_kept() -> None:
    error = WeftError("It broke.", hint="Mend it.", run="r1")
    assert (error.message, str(error), error.hint, error.run) == ("It broke.", "It broke.", "Mend it.", "r1")
    assert errors.NotFound().message == "There is no such thing."


def test_the_exit_statuses_are_the_documented_ones() -> None:
    assert {kind.exit_status for kind in CLASSES} <= {1, 2, 3, 4, 5, 6, 7}
    assert errors.EmbeddedServerFailed.exit_status == 7
    assert errors.SettingsError.exit_status == 2
