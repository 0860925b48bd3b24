"""What a person may set, and which project a file belongs to.

The only reader of `weft.toml`, of the environment and of the flags that say the same.

A flag goes before the environment, that before `weft.toml`, that before what is built in. Read by hand with
the standard library alone: importing a settings library takes longer than all else that a small command
does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from weft.errors import SettingsError

PROJECT_FILE = "weft.toml"
LogFormat = Literal["auto", "console", "json"]


@dataclass(frozen=True, slots=True)
class Project:
    """Who a program belongs to. The same id is the same project, in any folder and on any host.

    `root` is the folder of `weft.toml`, else the program's own.
    """

    id: str
    name: str
    root: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How a worker holds on to its runs, and what it lets pass. `value_limit` is bytes of one port's JSON."""

    lease: timedelta = timedelta(seconds=60)
    renew: timedelta = timedelta(seconds=15)
    grace: timedelta = timedelta(seconds=10)
    value_limit: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set, with what holds when nobody sets it.

    Without a `database_url` the database is the embedded one, in `data_folder` or else the user's own, run
    by the PostgreSQL programs in `postgres_tools` or else by the ones that are found.
    """

    database_url: str | None = None
    data_folder: Path | None = None
    postgres_tools: Path | None = None
    concurrency: int = 100
    log_format: LogFormat = "auto"
    engine: EngineSettings = field(default_factory=EngineSettings)


def project_of(path: Path) -> Project:
    """The project of a file or folder: the nearest `weft.toml` at or above it, else its folder alone.

    Raises SettingsError for a `weft.toml` that cannot be used.
    """
    path = path.resolve()
    folder = path if path.is_dir() else path.parent
    for root in (folder, *folder.parents):
        if (root / PROJECT_FILE).exists():
            told = _read_file(root / PROJECT_FILE)
            identity = told.get("project.id") or told.get("project.name")
            if identity is None:
                return _implied(root)
            return Project(identity, told.get("project.name") or identity, root)
    return _implied(folder)


def load_settings(
    project: Project | None = None,
    *,
    database_url: str | None = None,
    concurrency: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings for one command, from its flags, the environment and the project's `weft.toml`.

    Raises SettingsError: which value, from where, and what is allowed.
    """
    told: dict[str, Any] = {}
    if project is not None and (project.root / PROJECT_FILE).exists():
        told = _read_file(project.root / PROJECT_FILE)
    surroundings = os.environ if environment is None else environment
    for name, key in KEYS.items():
        # Set but empty is how a shell says "not set".
        if key.variable and surroundings.get(key.variable):
            told[name] = _accept(key, surroundings[key.variable], key.variable)
    for name, flag, value in (
        ("database.url", "--database-url", database_url),
        ("worker.concurrency", "--concurrency", concurrency),
    ):
        if value is not None:
            told[name] = _accept(KEYS[name], value, flag)
    own, of_engine = (
        {key.field: told[name] for name, key in KEYS.items() if name in told and key.of is kind}
        for kind in (Settings, EngineSettings)
    )
    settings = Settings(**own, engine=EngineSettings(**of_engine))
    if settings.engine.renew * 2 > settings.engine.lease:
        raise SettingsError(
            f"A lease of {settings.engine.lease} that is renewed every {settings.engine.renew} would lapse "
            "when one renewal is late.",
            hint="Let worker.lease be at least twice worker.renew.",
        )
    return settings


# --- the keys ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Key:
    """One thing to set. `read` gives the value or raises ValueError; `allowed` says what it takes."""

    allowed: str
    read: Callable[[Any], Any]
    variable: str | None = None
    of: type | None = None
    field: str = ""


def _text(pattern: str) -> Callable[[Any], str]:
    shape = re.compile(pattern)

    def read(value: Any) -> str:
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise ValueError
        return value

    return read


def _folder(value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError from None


def _duration(value: Any) -> timedelta:
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    if isinstance(value, str):
        told = re.fullmatch(r"(\d+(?:\.\d+)?) *(ms|s|m|h)?", value.strip())
        if told is None:
            raise ValueError
        seconds = float(told[1]) * units[told[2] or "s"]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise ValueError
    if not 0.1 <= seconds <= 86_400:
        raise ValueError
    return timedelta(seconds=seconds)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    return int(value)


def _concurrency(value: Any) -> int:
    number = _whole(value)
    if not 1 <= number <= 10_000:
        raise ValueError
    return number


def _size(value: Any) -> int:
    units = {None: 1, "KiB": 1024, "MiB": 1024**2}
    told = re.fullmatch(r"(\d+) *(KiB|MiB)?", value.strip()) if isinstance(value, str) else None
    size = int(told[1]) * units[told[2]] if told else _whole(value)
    if not 1024 <= size <= 64 * 1024**2:
        raise ValueError
    return size


DURATION = 'a time from 0.1 s to 24 h, such as "90s", "2m" or 90 (seconds)'
FOLDER = "the path of a folder"

KEYS: Mapping[str, Key] = {
    "project.id": Key("1 to 100 ASCII letters, digits and any of _ - .", _text(r"[A-Za-z0-9_.-]{1,100}")),
    "project.name": Key("one line of 1 to 100 characters", _text(r"[^\x00-\x1f\x7f]{1,100}")),
    "database.url": Key(
        "a PostgreSQL URL such as postgresql://user@host/database",
        _text(r"postgres(ql)?://\S*"),
        "WEFT_DATABASE_URL",
        Settings,
        "database_url",
    ),
    "database.folder": Key(FOLDER, _folder, "WEFT_DATA_FOLDER", Settings, "data_folder"),
    "database.tools": Key(FOLDER, _folder, "WEFT_POSTGRES_TOOLS", Settings, "postgres_tools"),
    "worker.concurrency": Key(
        "a whole number from 1 to 10000", _concurrency, "WEFT_CONCURRENCY", Settings, "concurrency"
    ),
    "worker.lease": Key(DURATION, _duration, "WEFT_LEASE", EngineSettings, "lease"),
    "worker.renew": Key(DURATION, _duration, "WEFT_RENEW", EngineSettings, "renew"),
    "worker.grace": Key(DURATION, _duration, "WEFT_GRACE", EngineSettings, "grace"),
    "worker.value_limit": Key(
        'a size from 1 KiB to 64 MiB, such as "4 MiB" or 4194304 (bytes)',
        _size,
        "WEFT_VALUE_LIMIT",
        EngineSettings,
        "value_limit",
    ),
    "log.format": Key(
        '"auto" (lines for people on a terminal, else JSON), "console" or "json"',
        _text("auto|console|json"),
        "WEFT_LOG_FORMAT",
        Settings,
        "log_format",
    ),
}


def _accept(key: Key, value: Any, source: str) -> Any:
    try:
        return key.read(value)
    except ValueError:
        # A URL may hold a password, so it is not shown.
        shown = "this value" if key.field == "database_url" else repr(value)
        raise SettingsError(f"{source} cannot be {shown}.", hint=f"It takes {key.allowed}.") from None


# --- weft.toml --------------------------------------------------------------------------------------------


def _read_file(file: Path) -> dict[str, Any]:
    """The values of a `weft.toml`, each read, by `table.key`; relative folders start at the file's own."""
    import tomllib

    if not file.is_file() and not file.is_dir():
        raise SettingsError(f"{file} cannot be read: it is neither a file nor a folder.")
    try:
        text = file.read_text("utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} cannot be read: it is not UTF-8 text.") from error
    except RecursionError as error:
        raise SettingsError(f"{file} cannot be read: it nests too deep.") from error
    except ValueError as error:
        place = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        where = f"{file}:{place[1]}:{place[2]}" if place else str(file)
        reason = str(error)[: place.start()] if place else str(error)
        raise SettingsError(f"{where}: this is not TOML: {reason}.") from error
    told: dict[str, Any] = {}
    for table, values in content.items():
        if not isinstance(values, dict):
            values = {"": values}
        for name, value in values.items():
            path = f"{table}.{name}".rstrip(".")
            where = _where(file, text, table, name)
            if path not in KEYS:
                raise SettingsError(f"{where}: there is no setting {path}.", hint=_nearest(path))
            told[path] = _accept(KEYS[path], value, f"{where}: {path}")
            if isinstance(told[path], Path):
                told[path] = file.parent / told[path]
    return told


def _where(file: Path, text: str, table: str, name: str) -> str:
    """`file:line` of a key as people write it, else the file alone."""
    inside = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line)
        inside = header[1] if header else inside
        key = re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line)
        if key and f"{inside}.{key[1]}".strip(".") in (f"{table}.{name}", table):
            return f"{file}:{number}"
    return str(file)


def _nearest(path: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(path, KEYS, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(KEYS)}."


def _implied(folder: Path) -> Project:
    """A project without a `weft.toml`: told apart by its folder's path, called by its folder's name."""
    import hashlib

    name = os.fsencode(folder.name).decode("utf-8", "replace") or "root"
    fingerprint = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
    return Project(f"{name}-{fingerprint}", name, folder)
