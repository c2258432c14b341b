"""Bodies of administration are read as strictly as those of the data plane."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from gateway.data_plane.strict_json import decode_members


class StrictBodyRoute(APIRoute):
    """Refuses a body that two readers could understand differently, such as one that names a member twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if body := await request.body():
                decode_members(body)
            return await answer(request)

        return handle
