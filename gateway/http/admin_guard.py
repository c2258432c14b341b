"""The door of ``/admin`` as FastAPI wants it."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request

from gateway.errors import InvalidRequestError
from gateway.http.admin_access import AdminAccess
from gateway.services import Services


def admins_only(services: Services) -> Any:
    """A dependency that lets nobody but the operator pass."""
    access = AdminAccess(lambda: services.settings.auth.admin_key)

    async def check(request: Request) -> None:
        access.check(request.headers.raw)

    return Depends(check)


async def _known_query(request: Request) -> None:
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            raise InvalidRequestError(f"'{name}' is not known here; /openapi.json lists what is.", param=name)


only_known_query = Depends(_known_query)
"""A dependency that refuses misspelt parameters: without its dry_run, a reload is one."""
