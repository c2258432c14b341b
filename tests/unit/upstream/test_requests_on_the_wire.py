"""What our client writes is one request to h11 too: each header once, and the body that was given."""

from __future__ import annotations

import asyncio

import h11
import pytest

from gateway.upstream.base import Origin, RequestHead
from gateway.upstream.connection import Connection
from gateway.upstream.pool import OriginPool

HEADERS = (("content-type", "application/json"), ("authorization", "Bearer a b"), ("x-empty", ""), ("x-latin", "\xe4"))


class Wire:
    """As much of a transport as a request needs."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, pieces: tuple[bytes, ...]) -> None:
        self.written += b"".join(pieces)


@pytest.mark.parametrize("host", ["api.test", "127.0.0.1", "::1"])
@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize("body", [b"", b"{}", bytes(200_000)], ids=["empty", "small", "large"])
async def test_h11_reads_one_request(host: str, keep_alive: bool, body: bytes) -> None:
    origin = Origin(host, 8080, keep_alive=keep_alive)
    head = RequestHead("POST", "/v1/chat/completions?a=%20", origin, HEADERS)
    wire = Wire()
    connection = Connection(OriginPool(origin), asyncio.get_running_loop())
    connection.connection_made(wire)  # type: ignore[arg-type]  # it stands in for a transport

    connection.request((head.wire, b"%d\r\n" % len(body), b"x-request-id: req_1\r\n", b"\r\n"), body)
    await asyncio.sleep(0)  # it leaves at the end of the turn

    server = h11.Connection(h11.SERVER)
    server.receive_data(wire.written)
    request = server.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method, request.target) == (b"POST", b"/v1/chat/completions?a=%20")
    names = [name for name, _ in request.headers]
    assert len(names) == len(set(names))
    told = dict(request.headers)
    assert told[b"host"] == (b"[::1]:8080" if host == "::1" else f"{host}:8080".encode())
    assert told[b"content-length"] == b"%d" % len(body)
    assert told[b"x-request-id"] == b"req_1"
    assert told.get(b"connection") == (None if keep_alive else b"close")
    received = b""
    while not isinstance(event := server.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data)
        received += event.data
    assert received == body
    assert server.trailing_data == (b"", False)


@pytest.mark.parametrize("path", ["/a b", "v1", "", "/\xe4", "/a\r\nx: y"])
def test_a_path_that_would_break_the_first_line_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"path|control character"):
        RequestHead("POST", path, Origin("api.test", 80), ())
