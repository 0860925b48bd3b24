"""The command line. `main` is the `weft` command; everything else is loaded when a command needs it."""

from __future__ import annotations


def main() -> int:
    """Run the command that the process was started with; the exit status."""
    from weft.cli.shell import run_command

    return run_command()
