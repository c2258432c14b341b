"""Standard streams as they come: closed, full, a pipe that nobody reads any more, or not for UTF-8."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Literal, TextIO

_FAILED = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def prepare_streams() -> None:
    """Make all three streams usable; to be called before anything else opens a file.

    A closed one leads to nowhere, so that no database or socket can take its descriptor and be written to.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 - open as long as the process
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115 - open as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal has no letters for is shown by numbers, as standard error does it, and stops nothing.
        sys.stdout.reconfigure(errors="backslashreplace")


def close_output(code: int) -> int:
    """Write what standard output still holds; *code*, or that of a failure when it cannot be written."""
    error = let_go(sys.stdout, 1)
    if error is None:
        return code
    told = told_of_output(error)
    if told:
        tell(told)
    return code or _FAILED


def let_go(stream: TextIO, descriptor: Literal[1, 2]) -> OSError | None:
    """Write what *stream* still holds; if that fails the error, and the rest goes nowhere from now on.

    A stream keeps what it could not write and tries anew at each flush, the last of which is the interpreter's own: a
    failure that somebody has dealt with would be met again, be told again, and change the exit code. Streams that hold
    nothing back (PYTHONUNBUFFERED) do not do so.
    """
    try:
        stream.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
        return error
    return None


def tell(message: str) -> None:
    """Write a line to standard error, if anybody reads that."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{message}\n")
    let_go(sys.stderr, 2)


def told_of_output(error: BaseException) -> str | None:
    """What to say of an *error* that writing to a stream met; nothing of a reader that has left; None of all others."""
    if not isinstance(error, OSError) or error.filename is not None:
        return None
    if error.errno == errno.EPIPE:
        return ""
    return f"error: the output cannot be written: {error.strerror}" if error.errno in _FULL else None
