"""Colour only for a person, and quiet when the reader has gone."""

from __future__ import annotations

import io
import os
import sys

import pytest

from weft.cli.commands.db import without_password
from weft.cli.output import Output, paint, wants_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colour_on_a_terminal_alone(monkeypatch):
    assert paint("x", "red", Terminal()) == "\x1b[31mx\x1b[0m"
    assert paint("x", "red", io.StringIO()) == "x"
    assert paint("x", None, Terminal()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_colour(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())


def test_a_reader_that_has_gone_ends_the_output_quietly(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", buffering=1) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        out = Output()
        out.line("nobody reads this")
        out.flush()
        assert out.gone
        out.line("nor this")


def test_a_shown_url_has_no_password():
    assert without_password("postgresql://me:secret@db:5432/x") == "postgresql://me:***@db:5432/x"
    assert without_password("postgresql:///weft?host=/run") == "postgresql:///weft?host=/run"
