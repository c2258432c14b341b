"""Every way an upstream can fail on the wire becomes one typed error, which tells nothing it should not."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from tests.fakes.body_sink import CollectingSink
from tests.fakes.scripted_server import (
    LAST_CHUNK,
    Close,
    Flood,
    Reset,
    Script,
    ScriptedServer,
    Sleep,
    answer,
    chunk,
    chunked_head,
)

Heads = Callable[..., RequestHead]

BEFORE_THE_HEAD = {
    "closes without a byte": ((Close(),), FailureKind.RESET),
    "resets without a byte": ((Reset(),), FailureKind.RESET),
    "closes within the status line": ((b"HTTP/1.1 20", Close()), FailureKind.RESET),
    "closes within the headers": ((b"HTTP/1.1 200 OK\r\ncontent-le", Close()), FailureKind.RESET),
    "closes after 100": ((b"HTTP/1.1 100 Continue\r\n\r\n", Close()), FailureKind.RESET),
    "speaks something else": ((b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Close()), FailureKind.MALFORMED),
    "an impossible status": ((b"HTTP/1.1 99 Red\r\n\r\n", Close()), FailureKind.MALFORMED),
    "a status that is none": (
        (b"HTTP/1.1 000 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",),
        FailureKind.MALFORMED,
    ),
    "two lengths": ((b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",), FailureKind.MALFORMED),
    "a broken length": ((b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",), FailureKind.MALFORMED),
    "switches protocols": (
        (b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",),
        FailureKind.MALFORMED,
    ),
    "switches protocols, silently": ((b"HTTP/1.1 101 X\r\n\r\n",), FailureKind.MALFORMED),
    "too many headers": ((b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 201 + b"\r\n",), FailureKind.TOO_LARGE),
    "too large headers": (
        (b"HTTP/1.1 200 OK\r\n" + b"a: %b\r\n" % (b"b" * 1000) * 70 + b"\r\n",),
        FailureKind.TOO_LARGE,
    ),
    "an unknown encoding": ((answer(b"x", headers="content-encoding: br\r\n"),), FailureKind.BAD_ENCODING),
    "another transfer coding": (
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc", Close()),
        FailureKind.MALFORMED,
    ),
    "a second transfer coding": (
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n", LAST_CHUNK),
        FailureKind.MALFORMED,
    ),
    "two encodings": ((answer(b"x", headers="content-encoding: gzip, gzip\r\n"),), FailureKind.BAD_ENCODING),
}


@pytest.mark.parametrize(("script", "kind"), BEFORE_THE_HEAD.values(), ids=BEFORE_THE_HEAD.keys())
async def test_a_failure_before_the_head_is_raised_by_send(
    upstream: Upstream, head_for: Heads, script: Script, kind: FailureKind
) -> None:
    async with ScriptedServer(script) as server:
        with pytest.raises(ProviderError) as caught:
            await upstream.send(head_for(server), b"{}")
        assert caught.value.kind is kind
        assert caught.value.sent
        assert len(server.requests) == 1
        _tells_nothing_secret(caught.value)


async def test_headers_that_never_end_are_cut_off(http1: Http1Upstream, head_for: Heads) -> None:
    """Our own client alone: under httpx2 this is MALFORMED."""
    async with ScriptedServer([b"HTTP/1.1 200 OK\r\n", b"a: " + b"b" * 200_000]) as server:
        with pytest.raises(ProviderError) as caught:
            await http1.send(head_for(server), b"{}")
        assert caught.value.kind is FailureKind.TOO_LARGE
        await server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize("start", [b"0\r\nx: ", b"1;a="], ids=["trailer", "extension"])
async def test_what_never_ends_beside_the_body_is_cut_off(http1: Http1Upstream, head_for: Heads, start: bytes) -> None:
    """Our own client alone: httpx2 gives what it reads to h11, which waits for the end of the line."""
    script: Script = [chunked_head(), chunk(b"hel"), start, Flood(b"y" * 10_000, 100_000_000)]
    async with ScriptedServer(script) as server:
        response = await http1.send(head_for(server), b"{}")
        with pytest.raises(ProviderError) as caught:
            await response.read(100)
        assert caught.value.kind is FailureKind.TOO_LARGE
        await server.wait_until(lambda s: s.open_connections == 0)
        assert server.sent_bytes < 20_000_000


async def test_interim_answers_do_not_go_on_for_ever(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer([b"HTTP/1.1 102 Processing\r\n\r\n" * 30]) as server:
        with pytest.raises(ProviderError) as caught:
            await http1.send(head_for(server), b"{}")
        assert caught.value.kind is FailureKind.MALFORMED


async def test_length_together_with_chunks_is_refused(http1: Http1Upstream, head_for: Heads) -> None:
    """Our own client alone: h11 believes the chunks, as RFC 9112 also allows."""
    script = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n", LAST_CHUNK]
    async with ScriptedServer(script) as server:
        with pytest.raises(ProviderError) as caught:
            await http1.send(head_for(server), b"{}")
        assert caught.value.kind is FailureKind.MALFORMED


_GZIP = "content-encoding: gzip\r\n"
_BOMB = zlib.compress(bytes(64 * 1024 * 1024), wbits=31)
_TORN = zlib.compress(bytes(range(256)) * 40, wbits=31)[:-20]

WITHIN_THE_BODY = {
    "closes before the body": (
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Sleep(0.01), Close()),
        b"",
        FailureKind.RESET,
    ),
    "resets before the body": (
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Sleep(0.05), Reset()),
        b"",
        FailureKind.RESET,
    ),
    "closes within the length": (
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", Sleep(0.01), Close()),
        b"hel",
        FailureKind.INTERRUPTED,
    ),
    "closes between chunks": ((chunked_head(), chunk(b"hel"), Sleep(0.01), Close()), b"hel", FailureKind.INTERRUPTED),
    "closes within a chunk": ((chunked_head(), b"5\r\nhel", Sleep(0.01), Close()), b"hel", FailureKind.INTERRUPTED),
    "closes before the last line": (
        (chunked_head(), chunk(b"hel"), b"0\r\n", Sleep(0.01), Close()),
        b"hel",
        FailureKind.INTERRUPTED,
    ),
    "resets between chunks": ((chunked_head(), chunk(b"hel"), Sleep(0.05), Reset()), b"hel", FailureKind.INTERRUPTED),
    "resets an open end": ((b"HTTP/1.1 200 OK\r\n\r\nhel", Sleep(0.05), Reset()), b"hel", FailureKind.INTERRUPTED),
    "a broken chunk": ((chunked_head(), chunk(b"hel"), b"zz\r\n"), b"hel", FailureKind.MALFORMED),
    "a bomb": ((answer(_BOMB, headers=_GZIP),), None, FailureKind.BAD_ENCODING),
    "a torn compressed body": ((answer(_TORN, headers=_GZIP),), None, FailureKind.BAD_ENCODING),
    "not compressed at all": ((answer(b"plain text", headers=_GZIP),), b"", FailureKind.BAD_ENCODING),
}


@pytest.mark.parametrize(("script", "body", "kind"), WITHIN_THE_BODY.values(), ids=WITHIN_THE_BODY.keys())
async def test_a_failure_within_the_body_ends_a_stream_once(
    upstream: Upstream, head_for: Heads, script: Script, body: bytes | None, kind: FailureKind
) -> None:
    async with ScriptedServer(script) as server:
        response = await upstream.send(head_for(server), b"{}")
        sink = CollectingSink()
        response.stream(sink)
        error = await sink.wait_for_end()
        assert error is not None
        assert error.kind is kind
        if body is not None:
            assert sink.data == body
        assert len(sink.data) <= 16 * 1024 * 1024
        _tells_nothing_secret(error)
        response.close()
        if kind is not FailureKind.BAD_ENCODING:  # which leaves the HTTP around it intact
            await server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize(("script", "body", "kind"), WITHIN_THE_BODY.values(), ids=WITHIN_THE_BODY.keys())
async def test_a_failure_within_the_body_is_raised_by_read(
    upstream: Upstream, head_for: Heads, script: Script, body: bytes | None, kind: FailureKind
) -> None:
    async with ScriptedServer(script) as server:
        response = await upstream.send(head_for(server), b"{}")
        with pytest.raises(ProviderError) as caught:
            await response.read(64 * 1024 * 1024)
        assert caught.value.kind is kind
        _tells_nothing_secret(caught.value)
        response.close()
        if kind is not FailureKind.BAD_ENCODING:  # which leaves the HTTP around it intact
            await server.wait_until(lambda s: s.open_connections == 0)


@pytest.mark.parametrize(
    "script",
    [
        (answer(bytes(5000)),),
        (chunked_head(), *[chunk(bytes(500))] * 10, LAST_CHUNK),
        (answer(zlib.compress(bytes(5000), wbits=31), headers=_GZIP),),
    ],
    ids=["length", "chunked", "compressed"],
)
async def test_a_body_over_the_limit_is_refused(upstream: Upstream, head_for: Heads, script: Script) -> None:
    async with ScriptedServer(script) as server:
        response = await upstream.send(head_for(server), b"{}")
        with pytest.raises(ProviderError) as caught:
            await response.read(4999)
        assert caught.value.kind is FailureKind.TOO_LARGE
        response.close()

        response = await upstream.send(head_for(server), b"{}")
        assert len(await response.read(5000)) == 5000


async def test_a_body_that_goes_past_the_limit_drops_the_connection(upstream: Upstream, head_for: Heads) -> None:
    async with ScriptedServer([b"HTTP/1.1 200 OK\r\n\r\n", *[bytes(10_000)] * 5, Sleep(5)]) as server:
        response = await upstream.send(head_for(server), b"{}")
        with pytest.raises(ProviderError) as caught:
            await response.read(30_000)
        assert caught.value.kind is FailureKind.TOO_LARGE
        if isinstance(upstream, Http1Upstream):
            assert upstream.stats()[f"http://127.0.0.1:{server.port}"].idle == 0


def _tells_nothing_secret(error: ProviderError) -> None:
    for text in (error.message, error.detail, str(error), repr(error)):
        assert "sk-secret" not in text
        assert "/v1/chat" not in text
