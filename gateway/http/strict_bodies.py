"""Bodies of administration are read as strictly as those of the data plane."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from gateway.data_plane.strict_json import check_number, decode_members


class StrictBodyRoute(APIRoute):
    """Refuses a body that two readers could understand differently, such as one that names a member twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if body := await request.body():
                for name, value in decode_members(body).items():
                    check_number(name, value)
            return await answer(request)

        return handle
