"""What can go wrong with a local model; every message says what helps."""

from __future__ import annotations


class LocalEngineError(Exception):
    """Base of all errors of this package. *permanent* ones do not go away by trying again."""

    permanent = False


class ModelMissingError(LocalEngineError):
    """The model's file is not on this machine."""

    permanent = True


class ModelDamagedError(LocalEngineError):
    """The model's file is not what it should be."""

    permanent = True


class LibraryMissingError(LocalEngineError):
    """The engine's native library cannot be loaded on this machine."""

    permanent = True


class ModelUnreadableError(LocalEngineError):
    """The engine refused the model."""

    permanent = True


class EngineCrashedError(LocalEngineError):
    """The engine's process ended, or stopped answering."""


class EngineDownError(LocalEngineError):
    """The engine is not running; the message holds why."""


class PullError(LocalEngineError):
    """A model could not be fetched."""


class UnreachableError(PullError):
    """The package index could not be reached, or may not be."""


class CommandMissingError(LocalEngineError):
    """The program of a `command` cannot be started."""

    permanent = True


class NotEnoughMemoryError(LocalEngineError):
    """The model does not fit into the memory that is free now; the message has the figures."""


class NoRoomError(LocalEngineError):
    """As many models are loaded as may be, and none of them could be unloaded in time."""


class WrongPurposeError(LocalEngineError):
    """A model cannot do what it is asked to be started for; *option* says which setting that is."""

    permanent = True

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option
