"""Keeps a server that is not ours, such as llama-server: it ends when the gateway does, and nothing of it stays.

It is started as ``python -m local_engine.keeper``. Standard input brings ``{"command", "socket", "parent_pid"}`` as
JSON on one line and ends when the parent does. Standard output carries one JSON object, ``{"started": pid}`` or
``{"failed": reason}``; what the command writes goes to standard error. The exit is the command's own, signals included.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from local_engine.lifeline import die_when_parent_does
from local_engine.options import ChildExit
from local_engine.reports import claim_stdout, tell


def main() -> int:
    orders: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    report = claim_stdout()
    if orders["socket"]:
        # A killed predecessor leaves it, and nobody binds over it.
        Path(orders["socket"]).unlink(missing_ok=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C: the parent decides when its engine ends
    try:
        process = _start(orders["command"])
    except OSError as error:
        tell(report, {"failed": f"{orders['command'][0]} cannot be started: {error.strerror}"})
        return ChildExit.COMMAND_MISSING
    signal.signal(signal.SIGTERM, lambda number, _: _pass_on(process, number, _))
    threading.Thread(target=_outlive_nobody, name="lifeline", daemon=True).start()
    tell(report, {"started": str(process.pid)})
    code = process.wait()
    _end_the_rest()
    return _end_alike(code)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    # What modules of ours are found by is no business of the command's.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(  # noqa: S603 - the operator's own configuration
        command,
        stdin=subprocess.DEVNULL,
        env=environment,
        # Runs between fork and exec; there are no other threads yet. Should this keeper be killed, the command is too.
        preexec_fn=die_when_parent_does if sys.platform != "win32" else None,
    )


def _outlive_nobody() -> None:
    """End the command, and all that it has started, when the parent is gone: they are one group with this process."""
    # Not through a buffered file: its lock, held by this thread, would make the interpreter abort at its end.
    while os.read(0, 65536):
        """Nothing more is said."""
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_the_rest() -> None:
    """End what the command has started and left."""
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


def _pass_on(process: subprocess.Popen[bytes], number: int, frame: FrameType | None) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _end_alike(code: int) -> int:
    """The command's exit code, or its death by the same signal."""
    if code < 0 and sys.platform != "win32":
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
