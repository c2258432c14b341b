"""What every command prints with: plain lines, JSON, an error with its exit code."""

from __future__ import annotations

import contextlib
import json
import sys
from enum import IntEnum
from functools import cache
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text


class ExitCode(IntEnum):
    """Exit codes of the command line; they are an interface."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    UNREACHABLE = 4


class _Console(Console):
    """rich's, but for a reader that leaves: it ends commands by their one way out, and no server."""

    def on_broken_pipe(self) -> None:
        raise  # the BrokenPipeError, in whose handling this is called


@cache
def out() -> Console:
    """Standard output. Without colour when it is no terminal or NO_COLOR is set; a line is never cut or folded."""
    return _Console(highlight=False, soft_wrap=True)


@cache
def err() -> Console:
    """Standard error, for everything that is no result: progress, notes, errors."""
    return _Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(data: Any) -> None:
    """Print *data* as JSON, for ``--json``; whatever the terminal has no letters for is escaped."""
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=plain, default=str) + "\n")


def note(message: str) -> None:
    """A remark for a person, on standard error."""
    _say(Text(message, style="dim"))


def fail(message: str, code: ExitCode = ExitCode.FAILED) -> NoReturn:
    """Say what went wrong on standard error and end the command with *code*."""
    _say(Text.assemble(("error: ", "bold red"), message))
    raise typer.Exit(int(code))


def _say(text: Text) -> None:
    with contextlib.suppress(OSError):  # nobody reads it: no reason not to go on, nor for another exit code
        err().print(text)
