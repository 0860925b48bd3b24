"""The commands and their options. Each loads its work when it is called, so that `weft --help` loads none.

Not here: what the commands do (`commands/`), and what their errors look like (`shell.py`).
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import app_upkeep, app_waits
from weft.cli.options import Json, ProgramFile, RunId, Url
from weft.cli.shell import drive

app = typer.Typer(
    name="weft",
    help="A durable runtime for programs written as graphs, on PostgreSQL.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
db = typer.Typer(help="Where the data is; migrate it, dump it.", invoke_without_command=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"weft {version('weft-runtime')}")
        except PackageNotFoundError:
            print("weft, from a checkout that is not installed")
        raise typer.Exit


@app.callback()
def start(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks, as WEFT_DEBUG=1 does.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["WEFT_DEBUG"] = "1"


@app.command()
def run(
    file: ProgramFile,
    target: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Only this node and what feeds it.")] = None,
    before: Annotated[list[str] | None, typer.Option(metavar="NODE", help="What this node needs, without it.")] = None,
    from_: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="NODE=JSON", help="Start here with these input values."),
    ] = None,
    emit: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=JSON", help="The node does not run; these are its emissions."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Tag the run.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Only queue it; a worker runs it.")] = False,
    deadline: Annotated[
        str | None, typer.Option(metavar="DURATION", help="End the run after this time, such as 30s or 2h.")
    ] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Compile a program, start it, follow it to its end.

    On a terminal it asks the forms of the run. Ctrl-C lets go of the run and leaves it as it is: the last line says who
    goes on with it. A run that only somebody elsewhere can wake is left the same way at once (status 6).
    """
    from weft.cli.commands import run as command

    request = command.Request(file, target or [], before or [], from_ or [], emit or [], tag or [], detach, deadline)
    return drive(command.run(request, json, database_url))


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Without one: every .weft file here.")
    ] = None,
    json: Json = False,
) -> int:
    """Report every diagnostic of programs at once."""
    from weft.cli.commands import check as command

    return command.check(files or [], json)


@app.command()
def executions(
    status: Annotated[list[str] | None, typer.Option(metavar="STATUS", help="Only of this status.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Only with this tag.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Started since: an instant, or 30m, 2d back.")
    ] = None,
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Only where this node was reached.")] = None,
    project: Annotated[str | None, typer.Option(metavar="PROJECT", help="Only of this project, by id or name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    offset: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Leave out the newest so many.")] = 0,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """List runs, newest first."""
    from weft.cli.commands import listing as command

    filters = command.Filters(status or [], tag or [], since, node, project, limit, offset)
    return drive(command.executions(filters, json, database_url))


@app.command()
def events(
    run: RunId,
    node: Annotated[list[str] | None, typer.Option(metavar="NODE", help="Only of this node.")] = None,
    kind: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only of this kind.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut nothing.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run ends.")] = False,
    utc: Annotated[bool, typer.Option("--utc", help="Times as dates, in UTC.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Times as dates, in this machine's zone.")] = False,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Print a run's journal, one line an event."""
    from weft.cli.commands import events as command

    view = command.View(node or [], kind or [], full, follow, utc, local)
    return drive(command.events(run, view, json, database_url))


@app.command()
def logs(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Without one: the newest run of this project.")
    ] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Print the lines, costs and failures of a run."""
    from weft.cli.commands import logs as command

    return drive(command.logs(run, json, database_url))


@app.command()
def follow(
    run: RunId,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Stop following after this time (status 6).")
    ] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Print a run's lines and failures until it ends.

    How it ends is the exit status, as it is of `weft run`.
    """
    from weft.cli.commands import follow as command

    return drive(command.follow(run, timeout, json, database_url))


@app.command()
def stop(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids, or their beginnings or endings; `-` reads them from stdin."),
    ] = None,
    tag: Annotated[
        str | None, typer.Option(metavar="TAG", help="Every live run of this project with this tag.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be stopped.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Cancel runs, by id or by tag."""
    from weft.cli.commands import stop as command

    return drive(command.stop(command.Request(runs or [], tag, dry_run, yes), json, database_url))


for command in (app_waits.forms, app_waits.answer, app_waits.wake, app_waits.why):
    app.command()(command)


@app.command()
def worker(
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Drive at most so many runs at once.")
    ] = None,
    project: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="A project to serve; without one, the current.")
    ] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Run what is queued, until told to go.

    SIGTERM or Ctrl-C drains: what runs may finish, the rest is given back. A second one ends at once.
    """
    from weft.cli.commands import worker as command

    return drive(command.worker(concurrency, project or [], json, database_url))


@app.command()
def serve(
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Where to listen; beyond this machine only once there is a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8080,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Drive at most so many runs at once.")
    ] = None,
    project: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="A project to serve; without one, the current.")
    ] = None,
    json: Json = False,
    database_url: Url = None,
) -> int:
    """Serve forms, webhooks and the API; run what is queued.

    Forms and webhooks of every project in the database are served; runs of the projects here are run, as by `weft
    worker`. SIGTERM or Ctrl-C drains both. A second one ends at once.
    """
    from weft.cli.commands import serve as command

    return drive(command.serve(host, port, concurrency, project or [], json, database_url))


@app.command()
def nodes(json: Json = False) -> int:
    """List the node types that programs here can use."""
    from weft.cli.commands import nodes as command

    return command.nodes(json)


@app.command()
def describe_nodes(
    types: Annotated[list[str] | None, typer.Argument(metavar="[TYPE]...", help="Only these.")] = None,
    json: Json = False,
) -> int:
    """Print the metadata of node types."""
    from weft.cli.commands import nodes as command

    return command.describe(types or [], json)


app.command()(app_upkeep.test_node)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The folder to make; its name is the project's.")],
    json: Json = False,
) -> int:
    """Make a project with a first program and node."""
    from weft.cli.commands import new as command

    return command.new(name, json)


app.add_typer(db, name="db")
app.command()(app_upkeep.clean)
app.command()(app_upkeep.doctor)
app.add_typer(app_upkeep.token, name="token")


@db.callback()
def db_where(context: typer.Context, json: Json = False, database_url: Url = None) -> int | None:
    """Say where the data is."""
    if context.invoked_subcommand is not None:
        return None
    from weft.cli.commands import db as command

    return drive(command.where(json, database_url))


@db.command()
def migrate(json: Json = False, database_url: Url = None) -> int:
    """Bring the database to this weft.

    Every command that uses the database does so by itself.
    """
    from weft.cli.commands import db as command

    return drive(command.migrate(json, database_url))


@db.command()
def dump(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Without one: stdout.")] = None,
    database_url: Url = None,
) -> int:
    """Write all data as SQL, with pg_dump."""
    from weft.cli.commands import db as command

    return drive(command.dump(file, database_url))
