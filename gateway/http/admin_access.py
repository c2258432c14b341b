"""Who may use ``/admin``: whoever has the admin key, and nobody where none is set."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from pydantic import SecretStr

from gateway.errors import AuthenticationError, PermissionDeniedError
from gateway.http.plain import Headers
from gateway.pipeline.authenticate import find_credentials


class AdminAccess:
    """Lets requests with the admin key pass, as bearer, ``x-api-key`` or ``api-key``."""

    def __init__(self, admin_key: Callable[[], SecretStr | None]) -> None:
        """*admin_key* gives the one that counts now; a reload may bring another."""
        self._admin_key = admin_key

    def check(self, headers: Headers) -> None:
        """Return, or raise `AuthenticationError`, or `PermissionDeniedError` where there is no admin key."""
        admin_key = self._admin_key()
        secret = admin_key.get_secret_value() if admin_key is not None else ""
        if not secret:
            raise PermissionDeniedError(
                "/admin is off because no admin key is set. Set auth.admin_key (GATEWAY_ADMIN_KEY).",
                code="admin_disabled",
            )
        expected = _digest(secret.encode())
        for credential in find_credentials(headers):
            if hmac.compare_digest(_digest(credential), expected):
                return
        raise AuthenticationError("the admin key (auth.admin_key, or GATEWAY_ADMIN_KEY)")


def _digest(secret: bytes) -> bytes:
    # Equal lengths, so that comparing takes the same time whatever was sent.
    return hashlib.sha256(secret).digest()
