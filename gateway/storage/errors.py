"""What can go wrong with the database, as errors whose message a person can act on."""

from __future__ import annotations


class StorageError(Exception):
    """Base of all errors of this package. The message names the thing and what helps, and holds no secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class StorageUnavailableError(StorageError):
    """The database cannot be reached or does not answer; the same call may work later."""


class RejectedError(StorageError):
    """The database works but does not take these values; trying again is useless."""


class SchemaError(StorageError):
    """The tables are older or newer than this version of the code."""


class PepperError(StorageError):
    """The key pepper is missing, unusable, or not the one the stored keys were made with."""


class KeyNotFoundError(StorageError):
    """No key has that id or prefix, or more than one has."""


class KeyExistsError(StorageError):
    """A key with that secret exists already."""


class InvalidKeyError(StorageError):
    """A secret, name, model pattern or expiry that a key cannot have."""
