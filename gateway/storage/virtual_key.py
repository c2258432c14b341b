"""The key a client presents, as the pipeline sees it, and what a secret may look like."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from gateway.__about__ import KEY_PREFIX
from gateway.storage.errors import InvalidKeyError

_SECRET: Final = re.compile(r"[\x21-\x7e]{16,256}")
_REMEMBERED_MODELS: Final = 1024


@dataclass(frozen=True, slots=True)
class VirtualKey:
    """A key that was checked; it holds nothing secret."""

    id: str
    name: str
    prefix: str
    """The first characters of the secret, by which people tell keys apart."""
    models: tuple[str, ...] | None = None
    """Patterns with ``*`` and ``?``; None allows every model, an empty tuple none."""
    organisation_id: str | None = None
    team_id: str | None = None
    user_id: str | None = None
    expires_at: float | None = None
    """Seconds since 1970."""
    _allowed: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def allows(self, model_id: str) -> bool:
        """Whether the key may use a model."""
        if self.models is None:
            return True
        allowed = self._allowed.get(model_id)
        if allowed is None:
            allowed = any(fnmatchcase(model_id, pattern) for pattern in self.models)
            # Clients choose what they ask for, so what is remembered needs a bound.
            if len(self._allowed) >= _REMEMBERED_MODELS:
                self._allowed.clear()
            self._allowed[model_id] = allowed
        return allowed


ANONYMOUS: Final = VirtualKey(id="anonymous", name="anonymous", prefix="")
"""Everybody, under ``auth.mode: open``."""


def make_secret() -> str:
    """A new secret: the prefix and 32 URL-safe characters, 192 bits of chance."""
    return KEY_PREFIX + secrets.token_urlsafe(24)


def check_secret(secret: str) -> None:
    """`InvalidKeyError` unless *secret* can be a key; the message never repeats it."""
    if _SECRET.fullmatch(secret) is None:
        raise InvalidKeyError("A key must be 16 to 256 printable ASCII characters without spaces.")


def shown_prefix(secret: str) -> str:
    """What of a secret may be shown: eight characters, but of a short imported one at most a quarter."""
    return secret[: min(8, len(secret) // 4)]
