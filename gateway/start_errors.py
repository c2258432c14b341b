"""What may go wrong while a gateway starts, and the exit code each has; the messages say what helps."""

from __future__ import annotations

from gateway.bridge.errors import BridgeError
from gateway.listening import ListenError
from gateway.storage.errors import StorageError, StorageUnavailableError
from policies.base import PolicyError

START_ERRORS = (ListenError, StorageError, PolicyError, BridgeError)
"""Errors with a message for people; every other one is a bug and keeps its traceback."""

FAILED = 1
UNREACHABLE = 4


def exit_code(error: Exception) -> int:
    """The exit code of the command line for one of `START_ERRORS`."""
    return UNREACHABLE if isinstance(error, StorageUnavailableError) else FAILED
