"""Log lines of the process itself, by structlog: JSON in production, a console for people, always on stderr.

Not the lines of a node, which are in its run's journal. structlog costs a warm command a sixth of its time, so it is
loaded with the first line that is written; most commands never write one.
"""

from __future__ import annotations

import sys
from typing import Any, Final, Literal

LogFormat = Literal["auto", "console", "json"]
Level = Literal["debug", "info", "warning", "error"]

_LEVELS: Final[dict[Level, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_chosen: tuple[LogFormat, Level, bool] = ("auto", "warning", False)
_configured = False


class Logger:
    """A structlog logger of this name, made when it is first used. Values are keyword arguments."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def info(self, event: str, **values: Any) -> None:
        self._get().info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        self._get().warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        self._get().error(event, **values)

    def exception(self, event: str, **values: Any) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._get().exception(event, **values)

    def _get(self) -> Any:
        if self._logger is None:
            import structlog

            if not _configured:
                _configure()
            self._logger = structlog.get_logger().bind(logger=self._name)
        return self._logger


def get_logger(name: str) -> Logger:
    return Logger(name)


def choose(form: LogFormat, level: Level, *, colour: bool) -> None:
    """How lines look, and from which level on they are written. Call it before the first line."""
    global _chosen
    _chosen = (form, level, colour)


def _configure() -> None:
    import structlog

    global _configured
    form, level, colour = _chosen
    people = form == "console" or (form == "auto" and sys.stderr is not None and sys.stderr.isatty())
    common: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = (
        [structlog.dev.ConsoleRenderer(colors=colour)]
        if people
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=common + last,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _configured = True
