"""The commands for runs that wait, and their options; `app.py` takes them in."""

from typing import Annotated

import typer

from weft.cli.options import Json, RunId, Url
from weft.cli.shell import drive


def forms(
    project: Annotated[str | None, typer.Option(metavar="PROJECT", help="Only of this project, by id or name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """List the forms that wait for a person, the oldest first."""
    from weft.cli.commands import answering as command

    return drive(command.forms(project, limit, json, database_url))


def answer(
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The form's token, or a run that has no other form open.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="The answers; `-` reads them from stdin, as one JSON object."),
    ] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Answer nothing: the node closes all its ports.")] = False,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Answer a form. The first answer counts; without any, a terminal is asked.

    Approve and reject are written `key=approve` and `key=reject`, several options `key=one,two`.
    """
    from weft.cli.commands import answering as command

    return drive(command.answer(command.Request(token, values or [], skip), json, database_url))


def wake(
    run: RunId,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node that waits.")],
    json: Json = False,
    database_url: Url = None,
) -> int:
    """End a node's timer, or its rest between two tries, now."""
    from weft.cli.commands import answering as command

    return drive(command.wake(run, node, json, database_url))


def why(run: RunId, json: Json = False, database_url: Url = None) -> int:
    """Say what a run waits for.

    Since when, what will wake it, who could run it, and what a stop would do.
    """
    from weft.cli.commands import why as command

    return drive(command.why_run(run, json, database_url))
