"""Who is asking: somebody with a key, or the operator."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import AuthenticationError, PermissionDeniedError
from gateway.http.admin_access import AdminAccess
from gateway.http.plain import Headers
from gateway.pipeline.authenticate import VirtualKey
from gateway.services import Services


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
        self._admin = AdminAccess(lambda: services.settings.auth.admin_key)

    async def of(self, headers: Headers) -> Caller:
        """The caller; `AuthenticationError` without a good key or the admin key."""
        try:
            self._admin.check(headers)
        except (AuthenticationError, PermissionDeniedError):
            credentials = self._authenticator.credentials(headers)
            key = self._authenticator.check(credentials)
            return Caller(key if key is not None else await self._authenticator.look_up(credentials))
        return Caller(None)
