"""What clients point at is fetched from the public alone, and within limits."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.fetch import Fetcher
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.public import PublicResolver, is_public
from gateway.upstream.resolve import Address
from tests.fakes.scripted_server import Flood, Hang, RecordedRequest, Script, ScriptedServer, answer, chunked_head

PIXEL = b"\x89PNG\r\n\x1a\n"
IMAGE = answer(PIXEL, content_type="image/png")


@contextlib.asynccontextmanager
async def fetching(*, private: bool = True, seconds: float = 5.0) -> AsyncIterator[Fetcher]:
    deadlines = Deadlines(tick_seconds=0.01)
    fetcher = Fetcher(deadlines, private=private, seconds=seconds)
    try:
        yield fetcher
    finally:
        await fetcher.aclose()
        deadlines.close()


async def refusal(fetcher: Fetcher, url: str, most_bytes: int = 2**20) -> str:
    with pytest.raises(ProviderError) as caught:
        await fetcher.fetch(url, most_bytes)
    assert (caught.value.kind, caught.value.status, caught.value.code) == (
        FailureKind.BAD_REQUEST,
        400,
        "invalid_image_url",
    )
    return caught.value.message


def moved(to: str, status: int = 302) -> bytes:
    return answer(b"", status=status, headers=f"location: {to}\r\n")


def address(server: ScriptedServer, path: str = "/a.png") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


async def test_an_image_comes_with_its_type() -> None:
    async with ScriptedServer([answer(PIXEL, content_type="image/PNG; q=1")]) as server, fetching() as fetcher:
        assert await fetcher.fetch(address(server, "/a b.png?x=ü&y=%20"), 100) == ("image/png", PIXEL)

    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/a%20b.png?x=%C3%BC&y=%20")
    assert {"authorization", "cookie", "x-gateway-hop"}.isdisjoint(request.headers)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a.png",
        "http://localhost/a.png",
        "http://127.1/a.png",
        "http://2130706433/a.png",
        "http://0x7f.0.0.1/a.png",
        "http://0/a.png",
        "http://[::1]/a.png",
        "http://[::ffff:127.0.0.1]/a.png",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/a.png",
        "http://192.168.1.1:8080/a.png",
        "http://no-such-name.invalid/a.png",
    ],
)
async def test_addresses_of_our_own_are_not_connected_to(url: str) -> None:
    async with fetching(private=False) as fetcher:
        # One message for all: it must not tell which of them exist.
        assert await refusal(fetcher, url) == "no public server answers there"


async def test_nothing_is_sent_to_a_server_of_our_own() -> None:
    async with ScriptedServer([IMAGE]) as server, fetching(private=False) as fetcher:
        await refusal(fetcher, address(server))

        assert server.connections == 0


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "240.0.0.1", "192.0.0.192", "192.88.99.1", "168.63.129.16", "198.18.0.1", "::", "::1",
        "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "::7f00:1",
        "64:ff9b::7f00:1", "64:ff9b:1:a00:1::808:808", "fec0::1", "2002:7f00:1::", "2001:0:7f00:1::", "nonsense", "",
    ],
)  # fmt: skip
def test_what_is_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_what_is_public(text: str) -> None:
    assert is_public(text)


async def test_a_name_with_one_address_inside_is_refused_as_a_whole() -> None:
    async def look_up(host: str, port: int) -> list[Address]:
        return [(socket.AF_INET, ("8.8.8.8", port)), (socket.AF_INET, ("10.0.0.1", port))]

    with pytest.raises(socket.gaierror):
        await PublicResolver(look_up).resolve("both.example", 80)


async def test_a_name_that_changes_its_meaning_is_checked_each_time_it_is_used() -> None:
    meanings = iter(["8.8.8.8", "127.0.0.1"])

    async def look_up(host: str, port: int) -> list[Address]:
        return [(socket.AF_INET, (next(meanings), port))]

    resolver = PublicResolver(look_up)
    assert await resolver.resolve("rebound.example", 80) == [(socket.AF_INET, ("8.8.8.8", 80))]
    resolver.close()  # forgets the answer
    with pytest.raises(socket.gaierror):
        await resolver.resolve("rebound.example", 80)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "gopher://example.com/",
        "//example.com/a.png",
        "a.png",
        "http://",
        "http://user:secret@example.com/a.png",
        "http://example.com:99999/a.png",
        "http://[::1/a.png",
        "http://exa mple.com/a.png",
        "http://example.com/" + "a" * 9000,
        "http://" + "a" * 70 + ".example/",
    ],
)
async def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    async with fetching() as fetcher:
        assert "secret" not in await refusal(fetcher, url)


async def test_a_line_end_in_an_address_starts_no_header() -> None:
    async with ScriptedServer([IMAGE]) as server, fetching() as fetcher:
        with contextlib.suppress(ProviderError):
            await fetcher.fetch(address(server, "/a\r\nx-evil: 1"), 100)

        assert all("x-evil" not in request.headers for request in server.requests)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed(status: int) -> None:
    def script(request: RecordedRequest) -> Script:
        return [IMAGE] if request.path == "/b.png" else [moved("/b.png", status)]

    async with ScriptedServer(script) as server, fetching() as fetcher:
        assert await fetcher.fetch(address(server), 100) == ("image/png", PIXEL)


async def test_a_redirect_into_our_own_network_is_not_followed() -> None:
    """The first server is reached by a resolver that takes it for public; the second one is what it points at."""

    async def look_up(host: str, port: int) -> list[Address]:
        return [(socket.AF_INET, ("127.0.0.1", port))]

    class Trusting(PublicResolver):
        async def resolve(self, host: str, port: int) -> list[Address]:
            return await look_up(host, port) if host == "public.example" else await super().resolve(host, port)

    deadlines = Deadlines(tick_seconds=0.01)
    fetcher = Fetcher(deadlines)
    fetcher._client = Http1Upstream(deadlines, resolver=Trusting())
    async with ScriptedServer([IMAGE]) as inside, ScriptedServer([moved(address(inside))]) as outside:
        message = await refusal(fetcher, f"http://public.example:{outside.port}/a.png")

        assert message == "no public server answers there"
        assert (len(outside.requests), inside.connections) == (1, 0)
    await fetcher.aclose()
    deadlines.close()


async def test_redirects_have_an_end() -> None:
    async with ScriptedServer([moved("/a.png")]) as server, fetching() as fetcher:
        assert await refusal(fetcher, address(server)) == "it redirects too often"
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([answer(b"{}", status=404)], "the server answers 404"),
        ([answer(b"<html>", content_type="text/html")], "what is there is not an image"),
        ([answer(b"x", content_type="image")], "what is there is not an image"),
        ([answer(b"x" * 2000, content_type="image/png")], "it is larger than"),
        ([chunked_head("image/png"), Flood(b"400\r\n" + b"x" * 1024 + b"\r\n", 2**24)], "it is larger than"),
        ([answer(b"x", content_type="image/png")[:-1], Hang()], "it took longer than 0.3 s"),
        ([Hang()], "it took longer than 0.3 s"),
        ([b"nonsense\r\n\r\n"], "no public server answers there"),
    ],
)
async def test_what_is_no_image_or_too_much_is_refused(script: Script, words: str) -> None:
    async with ScriptedServer(script) as server, fetching(seconds=0.3) as fetcher:
        assert (await refusal(fetcher, address(server), 1024)).startswith(words)
        await server.wait_until(lambda server: server.open_connections <= 1)


async def test_a_fetch_that_is_cancelled_leaves_no_connection() -> None:
    async with ScriptedServer([Hang()]) as server, fetching() as fetcher:
        task = asyncio.create_task(fetcher.fetch(address(server), 100))
        await server.wait_until(lambda server: len(server.requests) == 1)
        task.cancel()
        await server.wait_until(lambda server: server.open_connections == 0, seconds=0.25)
