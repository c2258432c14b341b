"""A request that is refused before any handler is asked."""

from __future__ import annotations

from tests.fakes.fake_plane import Served

HEAD = b"POST /v1/echo HTTP/1.1\r\nHost: gateway\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


async def refused(served: Served, request: bytes, status: int, code: str) -> None:
    client = await served.connect()
    await client.send(request)
    answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"] == answer.error["request_id"]
    assert await client.closed()
    assert served.plane.started == []
