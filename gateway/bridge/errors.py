"""What can go wrong with a bridge; every message says what helps."""

from __future__ import annotations


class BridgeError(Exception):
    """Base of all errors of this package. *permanent* ones do not go away by trying again."""

    permanent = False


class BridgeMissingError(BridgeError):
    """The library a bridge runs is not installed, or must not be run."""

    permanent = True


class BridgeUnusableError(BridgeError):
    """The library is there and cannot be loaded."""

    permanent = True


class BridgeCrashedError(BridgeError):
    """A bridge's process ended, or was not ready in time."""
