"""The door of ``/admin`` as FastAPI wants it."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request

from gateway.http.admin_access import AdminAccess
from gateway.services import Services


def admins_only(services: Services) -> Any:
    """A dependency that lets nobody but the operator pass."""
    access = AdminAccess(lambda: services.settings.auth.admin_key)

    async def check(request: Request) -> None:
        access.check(request.headers.raw)

    return Depends(check)
