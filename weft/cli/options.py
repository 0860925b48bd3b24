"""The options and arguments that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="One JSON value a line, nothing else on stdout.")]
Url = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="Which PostgreSQL; else WEFT_DATABASE_URL, weft.toml, its own."),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or a unique beginning or ending of 4 or more.")]
ProgramFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A .weft file, or a folder with src/main.weft or main.weft.")
]
