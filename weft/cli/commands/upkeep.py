"""`weft clean`, `weft doctor` and `weft token`: looking after a database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from weft.cli.lines import columns, iso, one_line, shown
from weft.cli.output import Output, note
from weft.cli.session import current_project, opened
from weft.cli.shell import COMPLETED, FAILED
from weft.errors import NotFound, UsageError
from weft.service import upkeep
from weft.service.listing import ProjectRow, projects_named

if TYPE_CHECKING:
    from weft.service.opening import Store


@dataclass(frozen=True, slots=True)
class Scope:
    """Which projects are meant: one by key or name, `every`, else the current one."""

    project: str | None
    every: bool

    async def projects(self, store: Store) -> list[ProjectRow]:
        """Raises NotFound for a project that the database does not know, UsageError for two answers at once."""
        if self.every and self.project is not None:
            raise UsageError("give --project or --all, not both")
        if self.every or self.project is not None:
            return await projects_named(store.database, self.project)
        current = current_project()
        found = [each for each in await projects_named(store.database, None) if each.key == current.id]
        if not found:
            raise NotFound(
                f"the current project, {current.name}, has nothing in this database",
                hint="Name another with --project NAME, or all with --all.",
            )
        return found


async def clean(keep_days: float, scope: Scope, dry_run: bool, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    keep = timedelta(days=keep_days)
    async with opened(database_url) as store:
        projects = await scope.projects(store)
        doomed = {each.project: each for each in await upkeep.would_go(store, projects, keep)}
        for project in projects:
            going = doomed.get(project.id)
            runs, events = (0, 0) if going is None else (going.runs, going.events)
            if not dry_run:
                runs = await upkeep.clean(store, project, keep)
            _tell_cleaned(out, project, runs, events, dry_run)
            out.flush()
    return COMPLETED


def _tell_cleaned(out: Output, project: ProjectRow, runs: int, events: int, dry_run: bool) -> None:
    if out.json:
        key = "would_delete" if dry_run else "deleted"
        out.value({"project": project.key, key: runs, **({"events": events} if dry_run else {})})
        return
    count = f"{runs:,} run{'' if runs == 1 else 's'}"
    if dry_run:
        out.line(f"{one_line(project.name)}: {count} with {events:,} events would be deleted")
    else:
        out.line(f"{one_line(project.name)}: {count} deleted")


async def doctor(json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    count, rules = 0, set()
    async with opened(database_url) as store:
        names = {each.id: each.name for each in await projects_named(store.database, None)}
        async for each in upkeep.findings(store):
            count += 1
            rules.add(each.rule.query)
            detail = {name: value if isinstance(value, int) else str(value) for name, value in each.detail.items()}
            if json:
                project = names.get(each.project)
                found = {"rule": each.rule.says, "project": project, "run": str(each.run), **detail}
                out.value({**found, "remedy": each.remedy})
                continue
            shows = " ".join(f"{name}={shown(value)}" for name, value in detail.items())
            out.line(f"broken: {each.rule.says}", "red")
            out.line(f"  run {each.run} of {one_line(names.get(each.project, '?'))} {shows}".rstrip())
            out.line(f"  {each.remedy}")
    out.flush()
    if count:
        note(f"{count} row{'' if count == 1 else 's'} break{'s' if count == 1 else ''} {_rules(len(rules))}")
        note("hint: None of this should ever be. Please report it to the project, with what is said above.")
        return FAILED
    note("all rules hold")
    return COMPLETED


def _rules(count: int) -> str:
    return f"{count} rule{'' if count == 1 else 's'}"


async def mint(
    name: str, rights: list[str], scope: Scope, tag: str | None, json: bool, database_url: str | None
) -> int:
    out = Output(json=json)
    if not name.strip() or not name.isprintable() or len(name) > 100:
        raise UsageError("a token's name is one line of 1 to 100 characters")
    async with opened(database_url) as store:
        project = await _project_of_token(store, scope)
        token, text = await upkeep.mint(store, name, project, rights, tag=tag)
        if json:
            out.value({**_token_json(token, await _keys(store)), "token": text})
        else:
            out.line(text)
    out.flush()
    note(f"token {token.id} ({', '.join(token.rights)}); it is shown this once")
    return COMPLETED


async def _project_of_token(store: Store, scope: Scope) -> int | None:
    if scope.every and scope.project is None:
        return None
    if scope.project is None and not scope.every:
        return await store.project_number(current_project())
    [first, *_] = await scope.projects(store)
    return first.id


async def list_tokens(json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        tokens = await upkeep.every_token(store)
        keys = await _keys(store)
    if json:
        for each in tokens:
            out.value(_token_json(each, keys))
    else:
        for line in columns([_token_row(each, keys) for each in tokens]):
            out.line(line)
        if not tokens:
            note("no tokens")
    out.flush()
    return COMPLETED


async def revoke(number: int, json: bool, database_url: str | None) -> int:
    out = Output(json=json)
    async with opened(database_url) as store:
        revoked = await upkeep.revoke(store, number)
    if json:
        out.value({"id": number, "revoked": revoked})
        out.flush()
    note(f"token {number} {'opens nothing any more' if revoked else 'had been revoked before'}")
    return COMPLETED


async def _keys(store: Store) -> dict[int, str]:
    return {each.id: each.key for each in await projects_named(store.database, None)}


def _token_row(token: upkeep.Token, keys: dict[int, str]) -> list[str]:
    state = "" if token.revoked_at is None else f"revoked {iso(token.revoked_at)}"
    project = "all projects" if token.project is None else keys.get(token.project, "?")
    if token.tag is not None:
        project += f", runs tagged {token.tag}"
    return [str(token.id), one_line(token.name), project, ",".join(token.rights), iso(token.created_at), state]


def _token_json(token: upkeep.Token, keys: dict[int, str]) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "project": None if token.project is None else keys.get(token.project),
        "tag": token.tag,
        "rights": list(token.rights),
        "created": iso(token.created_at),
        "revoked": None if token.revoked_at is None else iso(token.revoked_at),
    }
