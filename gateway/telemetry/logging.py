"""Structured logs: for people on a terminal, JSON lines otherwise, and one `request` line for each request."""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO

import orjson
import structlog

from gateway.telemetry.redact import clean_event, register_secret
from gateway.telemetry.request_line import console_lines, json_lines
from gateway.telemetry.sink import LineSink

if TYPE_CHECKING:
    from gateway.storage.request_row import RequestRow

__all__ = ["close_logging", "configure_logging", "lines_dropped", "log_requests", "register_secret"]

LogFormat = Literal["auto", "console", "json"]

# These tell about every request or statement, with its values; what matters of it is in our own lines.
_QUIET = {
    "uvicorn.access": logging.ERROR,
    "sqlalchemy.engine": logging.WARNING,
    "aiosqlite": logging.WARNING,
    "alembic": logging.WARNING,  # at info it lists its plugins
    "httpx2": logging.WARNING,
    "httpcore2": logging.WARNING,
}
_ROUTED = ("uvicorn", "uvicorn.error", "uvicorn.access", "sqlalchemy", "alembic")


class _Output:
    """Where lines go, as `configure_logging` left it."""

    __slots__ = ("log_requests", "request_lines", "sink")

    def __init__(
        self, sink: LineSink, log_requests: bool, request_lines: Callable[[Sequence[RequestRow], datetime], str]
    ) -> None:
        self.sink = sink
        self.log_requests = log_requests
        self.request_lines = request_lines


_output: _Output | None = None


def configure_logging(format: LogFormat = "auto", level: str = "info", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send everything that structlog and the standard library log to *stream* (standard error), masked.

    *format* ``auto`` is ``console`` on a terminal and ``json`` elsewhere. May be called again; the earlier set-up is
    flushed and replaced.
    """
    global _output
    close_logging()
    stream = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    as_json = format == "json" or (format == "auto" and not stream.isatty())
    sink = LineSink(stream)
    renderer: Any = _render_json if as_json else _console_renderer(colours=stream.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        clean_event,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
    )
    handler = _SinkHandler(sink)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[:-1], structlog.stdlib.ExtraAdder(), clean_event],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in _ROUTED:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    for name, at_least in _QUIET.items():
        logging.getLogger(name).setLevel(max(at_least, threshold))
    _output = _Output(sink, threshold <= logging.INFO, json_lines if as_json else partial(console_lines, renderer))


def log_requests(rows: Sequence[RequestRow]) -> None:
    """Queue the `request` lines of *rows*; the writing thread puts them into words. Nothing happens below info."""
    if rows and _output is not None and _output.log_requests:
        _output.sink.put(partial(_output.request_lines, rows, datetime.now(UTC)), len(rows))


def lines_dropped() -> int:
    """How many lines were given up so far because the stream was blocked."""
    return _output.sink.dropped if _output is not None else 0


def close_logging() -> None:
    """Write what is queued, for two seconds at most. Later lines go nowhere until logging is configured again."""
    global _output
    if _output is not None:
        output, _output = _output, None
        output.sink.close()


atexit.register(close_logging)


class _SinkHandler(logging.Handler):
    def __init__(self, sink: LineSink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - as every handler of the standard library: logging never raises
            self.handleError(record)
        else:
            self._sink.put(line + "\n")


def _render_json(_logger: Any, _method: str, event: Mapping[str, Any]) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _console_renderer(*, colours: bool) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)
