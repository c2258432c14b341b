"""Proper answers in all the forms HTTP/1.1 allows, and which of them let the connection be used again."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import LAST_CHUNK, Close, Script, ScriptedServer, Sleep, answer, chunk, chunked_head

Heads = Callable[..., RequestHead]

ANSWERS = {
    "length": ((answer(b"hello"),), b"hello"),
    "length in pieces": ((b"HTTP/1.1 200 O", b"K\r\ncontent-length: 5\r\n\r", b"\nhe", Sleep(0.01), b"llo"), b"hello"),
    "length zero": ((b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",), b""),
    "chunked": ((chunked_head(), chunk(b"hel"), chunk(b"lo"), LAST_CHUNK), b"hello"),
    "chunked with trailers": ((chunked_head(), chunk(b"hello"), b"0\r\nx-cost: 1\r\n\r\n"), b"hello"),
    "chunk extensions": ((chunked_head(), b"5;a=b\r\nhello\r\n", LAST_CHUNK), b"hello"),
    "until the end": ((b"HTTP/1.1 200 OK\r\n\r\nhe", b"llo", Close()), b"hello"),
    "HTTP/1.0": ((b"HTTP/1.0 200 OK\r\n\r\nhello", Close()), b"hello"),
    "after 100": ((b"HTTP/1.1 100 Continue\r\n\r\n", answer(b"hello")), b"hello"),
    "after 103 with headers": ((b"HTTP/1.1 103 Early\r\nlink: </x>\r\n\r\n", answer(b"hello")), b"hello"),
    "204": ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
    "gzip": ((answer(zlib.compress(b"hello", wbits=31), headers="content-encoding: gzip\r\n"),), b"hello"),
    "deflate": ((answer(zlib.compress(b"hello"), headers="content-encoding: deflate\r\n"),), b"hello"),
    "raw deflate": ((answer(zlib.compress(b"hello", wbits=-15), headers="content-encoding: deflate\r\n"),), b"hello"),
    "identity": ((answer(b"hello", headers="content-encoding: identity\r\n"),), b"hello"),
}


@pytest.mark.parametrize(("script", "body"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_form_of_an_answer_is_read(
    upstream: Upstream, head_for: Heads, script: Script, body: bytes
) -> None:
    async with ScriptedServer(script) as server:
        response = await upstream.send(head_for(server), b"{}")
        assert await response.read(1 << 20) == body
        assert response.status == (204 if script is ANSWERS["204"][0] else 200)
        assert "link" not in response.headers
        response.close()
        response.close()


@pytest.mark.parametrize(("script", "body"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_form_of_an_answer_is_streamed(
    upstream: Upstream, head_for: Heads, script: Script, body: bytes
) -> None:
    async with ScriptedServer(script) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        assert await sink.wait_for_end() is None
        assert sink.data == body


async def test_a_request_goes_out_as_it_was_rendered(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer() as server:
        await upstream.send(head_for(server), b'{"a":1}', b"x-one: 1\r\nx-two: 2\r\n")
        request = server.requests[0]
        assert (request.method, request.path, request.body) == ("POST", "/v1/chat/completions", b'{"a":1}')
        assert request.headers == {
            "host": f"127.0.0.1:{server.port}",
            "accept-encoding": "identity",
            "authorization": "Bearer sk-secret",
            "content-length": "7",
            "x-one": "1",
            "x-two": "2",
        }


async def test_a_large_body_arrives_whole(upstream: Upstream, head_for: Heads) -> None:
    body = bytes(range(256)) * 32 * 1024
    async with ScriptedServer() as server:
        await upstream.send(head_for(server), body)
        assert server.requests[0].body == body


async def test_repeated_headers_are_joined_and_names_are_lowered(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(headers="X-Thing: a\r\nx-thing: b\r\nX-Empty:\r\n")]) as server:
        response = await upstream.send(head_for(server), b"{}")
        assert response.headers["x-thing"] == "a, b"
        assert response.headers["x-empty"] == ""
        assert response.headers["content-type"] == "application/json"


async def test_a_redirect_is_an_answer_like_any_other(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(b"", 307, headers="location: /elsewhere\r\n")]) as server:
        response = await upstream.send(head_for(server), b"{}")
        assert response.status == 307
        assert await response.read(100) == b""
        assert len(server.requests) == 1


async def test_cookies_are_not_kept(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(headers="set-cookie: a=b\r\n")]) as server:
        for _ in range(2):
            response = await upstream.send(head_for(server), b"{}")
            await response.read(100)
        assert "cookie" not in server.requests[1].headers


async def test_a_proxy_in_the_environment_is_ignored(
    upstream: Upstream, head_for: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with ScriptedServer() as server:
        response = await upstream.send(head_for(server), b"{}")
        assert response.status == 200


REUSABLE = {
    "length": (answer(b"hello"),),
    "chunked": (chunked_head(), chunk(b"hello"), LAST_CHUNK),
    "trailers": (chunked_head(), chunk(b"hello"), b"0\r\nx-cost: 1\r\n\r\n"),
}
NOT_REUSABLE = {
    "connection: close": (answer(b"hello", headers="connection: close\r\n"),),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",),
}
SURPLUS = {
    "bytes after the answer": (answer(b"hello") + b"HTTP/1.1 200 OK\r\n",),
    "rubbish after the answer": (answer(b"hello") + b"rubbish",),
    "a whole second answer": (answer(b"hello") + answer(b"forged"),),
}


@pytest.mark.parametrize("script", REUSABLE.values(), ids=REUSABLE.keys())
async def test_a_connection_is_used_again(upstream: Upstream, head_for: Heads, script: Script) -> None:
    async with ScriptedServer(script) as server:
        for _ in range(3):
            response = await upstream.send(head_for(server), b"{}")
            await response.read(100)
            response.close()
            assert "x-cost" not in response.headers
        assert server.connections == 1


async def test_http_1_0_with_keep_alive_is_used_again(http1: Http1Upstream, head_for: Heads) -> None:
    """Only by our own client: h11, under httpx2, never does."""
    async with ScriptedServer([b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok"]) as server:
        for _ in range(2):
            response = await http1.send(head_for(server), b"{}")
            assert await response.read(100) == b"ok"
        assert server.connections == 1


@pytest.mark.parametrize("script", NOT_REUSABLE.values(), ids=NOT_REUSABLE.keys())
async def test_a_connection_is_not_used_again_after(upstream: Upstream, head_for: Heads, script: Script) -> None:
    async with ScriptedServer(script) as server:
        for number in range(1, 4):
            response = await upstream.send(head_for(server), b"{}")
            assert await response.read(100) in (b"hello", b"ok")
            response.close()
            assert server.connections == number
            assert server.requests[-1].connection == number


@pytest.mark.parametrize("script", SURPLUS.values(), ids=SURPLUS.keys())
async def test_bytes_after_an_answer_are_never_taken_for_the_next(
    http1: Http1Upstream, head_for: Heads, script: Script
) -> None:
    """Only by our own client: httpx2 gives them to h11, which reads them as the next answer."""
    async with ScriptedServer(script) as server:
        for number in range(1, 4):
            response = await http1.send(head_for(server), b"{}")
            assert await response.read(100) == b"hello"
            assert server.requests[-1].connection == number


async def test_bytes_on_an_idle_connection_drop_it(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([answer(b"hello"), Sleep(0.02), answer(b"forged")]) as server:
        response = await http1.send(head_for(server), b"{}")
        assert await response.read(100) == b"hello"
        await server.wait_until(lambda s: s.open_connections == 0)
        response = await http1.send(head_for(server), b"{}")
        assert await response.read(100) == b"hello"
        assert server.connections == 2


async def test_an_origin_without_keep_alive_gets_a_connection_for_each_request(
    upstream: Upstream, head_for: Heads
) -> None:
    async with ScriptedServer() as server:
        for number in range(1, 4):
            response = await upstream.send(head_for(server, keep_alive=False), b"{}")
            await response.read(100)
            response.close()
            assert server.requests[-1].connection == number
            assert server.requests[-1].headers["connection"] == "close"
        await server.wait_until(lambda s: s.open_connections == 0)


async def test_an_answer_before_the_upload_ended_is_taken_and_the_connection_dropped(
    http1: Http1Upstream, head_for: Heads
) -> None:
    """More than all socket buffers hold, so that the upload certainly has not ended."""
    async with ScriptedServer([answer(b"too big", 413), Sleep(0.2), Close()], read_body=False) as server:
        response = await http1.send(head_for(server), bytes(64 * 1024 * 1024))
        assert response.status == 413
        assert await response.read(100) == b"too big"
        assert http1.stats()[f"http://127.0.0.1:{server.port}"].idle == 0
