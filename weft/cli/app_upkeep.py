"""The commands that look after a database and a project, and their options; `app.py` takes them in."""

from typing import Annotated

import typer

from weft.cli.options import Json, Url
from weft.cli.shell import drive

token = typer.Typer(help="API tokens: mint, list, revoke.", no_args_is_help=True)

Project = Annotated[
    str | None, typer.Option(metavar="PROJECT", help="A project, by id or name; without one, the current.")
]


def clean(
    keep_days: Annotated[
        float, typer.Option(min=0, max=36_500, metavar="N", help="Keep what ended within so many days.")
    ],
    project: Project = None,
    every: Annotated[bool, typer.Option("--all", help="Of all projects of the database.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Delete runs that ended long ago.

    All that belongs to them goes with them. A run that lives or waits is never deleted.
    """
    from weft.cli.commands import upkeep as command

    return drive(command.clean(keep_days, command.Scope(project, every), dry_run, json, database_url))


def doctor(json: Json = False, database_url: Url = None) -> int:
    """Check the rules that always hold on the database.

    Each row that breaks one is named, with what to do.

    Reads every event there is, and changes nothing. Exits 1 when it found something.
    """
    from weft.cli.commands import upkeep as command

    return drive(command.doctor(json, database_url))


def test_node(
    name: Annotated[str, typer.Argument(metavar="NODE", help="A node type, as `weft nodes` lists it.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- PYTEST...]", help="Handed on to pytest.")
    ] = None,
) -> int:
    """Run a node's own tests with pytest.

    They are `test_<file>.py` beside it, or in the project's `tests`.
    """
    from weft.cli.commands import node_tests as command

    return command.test_node(name, arguments or [])


@token.command()
def mint(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")],
    right: Annotated[
        list[str], typer.Option(metavar="RIGHT", help="read, answer, run, stop or configure; as often as needed.")
    ],
    project: Project = None,
    every: Annotated[bool, typer.Option("--all", help="For all projects of the database.")] = False,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="For runs that carry this tag alone.")] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Make a token. Its text is shown once, and nobody can tell it again."""
    from weft.cli.commands import upkeep as command

    return drive(command.mint(name, right, command.Scope(project, every), tag, json, database_url))


@token.command("list")
def list_tokens(json: Json = False, database_url: Url = None) -> int:
    """List all tokens there ever were, without their texts."""
    from weft.cli.commands import upkeep as command

    return drive(command.list_tokens(json, database_url))


@token.command()
def revoke(
    number: Annotated[int, typer.Argument(metavar="ID", help="The token's number, as the list has it.")],
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Let a token open nothing any more, from now on."""
    from weft.cli.commands import upkeep as command

    return drive(command.revoke(number, json, database_url))
