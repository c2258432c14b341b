"""Who may use a route: everybody, whoever has a key, or the operator."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastapi import Request

from gateway.errors import AuthenticationError
from gateway.pipeline.authenticate import VirtualKey, find_credentials
from gateway.services import Services


class Scope(StrEnum):
    """What a route asks of its caller."""

    PUBLIC = "public"
    KEY = "key"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking; *key* is None for the operator, who may see everything."""

    key: VirtualKey | None

    @property
    def is_admin(self) -> bool:
        return self.key is None

    def may_use(self, model_id: str) -> bool:
        return self.key is None or self.key.allows(model_id)


class Callers:
    """Finds out who is asking, from the headers of a request."""

    def __init__(self, services: Services) -> None:
        self._authenticator = services.authenticator
        admin_key = services.settings.auth.admin_key
        self._admin_key: Final = admin_key.get_secret_value().encode() if admin_key is not None else b""

    async def of(self, request: Request) -> Caller:
        """The caller; `AuthenticationError` without a good key or the admin key."""
        headers = request.headers.raw
        if self.is_admin(headers):
            return Caller(None)
        key = self._authenticator.check(headers)
        return Caller(key if key is not None else await self._authenticator.look_up(headers))

    async def admin(self, request: Request) -> None:
        """Return for the admin key; `AuthenticationError` for everybody else."""
        if not self.is_admin(request.headers.raw):
            raise AuthenticationError

    def is_admin(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the admin key is among the credentials."""
        if not self._admin_key:
            return False
        return any(hmac.compare_digest(found, self._admin_key) for found in find_credentials(headers))
