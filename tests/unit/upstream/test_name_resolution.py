"""Names and addresses: what is asked for and remembered, and which address is tried when."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.base import RequestHead, Upstream
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.resolve import Address, Resolver
from tests.fakes.scripted_server import Close, ScriptedServer, answer
from tests.unit.upstream.unsent import failure_of, free_port, head_to

Heads = Callable[..., RequestHead]


class Names:
    """A lookup that answers from a table and counts the questions; port 0 stands for the port asked for."""

    def __init__(self, **table: list[Address] | Exception) -> None:
        self.table = table
        self.questions = 0

    async def look_up(self, host: str, port: int) -> list[Address]:
        self.questions += 1
        await asyncio.sleep(0)
        found = self.table[host]
        if isinstance(found, Exception):
            raise found
        return [(family, (address[0], address[1] or port, *address[2:])) for family, address in found]


V4: Address = (socket.AF_INET, ("127.0.0.1", 0))
V4_ELSEWHERE: Address = (socket.AF_INET, ("127.0.0.2", 0))
V6: Address = (socket.AF_INET6, ("::1", 0, 0, 0))
V6_ELSEWHERE: Address = (socket.AF_INET6, ("::2", 0, 0, 0))


@contextlib.asynccontextmanager
async def _client(names: Names) -> AsyncIterator[Http1Upstream]:
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines, resolver=Resolver(names.look_up))
    yield upstream
    await upstream.aclose()
    deadlines.close()


async def test_a_name_is_asked_for_once_and_by_many_at_once() -> None:
    names = Names(api=[V4])
    async with _client(names) as upstream, ScriptedServer([Close()]) as server:
        head = head_to(server.port, host="api")
        results = await asyncio.gather(*(upstream.send(head, b"{}") for _ in range(5)), return_exceptions=True)
        assert all(isinstance(result, ProviderError) for result in results)
        assert server.connections == 5
        assert names.questions == 1


async def test_a_name_that_does_not_resolve_is_remembered_for_a_while() -> None:
    names = Names(api=socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    async with _client(names) as upstream:
        for _ in range(3):
            error = await failure_of(upstream, head_to(80, host="api"))
            assert error.kind is FailureKind.DNS
        assert names.questions == 1


async def test_what_cannot_be_a_name_does_not_resolve(http1: Http1Upstream) -> None:
    error = await failure_of(http1, head_to(80, host="a" * 64 + ".example"))
    assert error.kind is FailureKind.DNS


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_httpx_too_reports_a_name_that_does_not_resolve(
    httpx_upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On asyncio's own loop, the only one whose lookups can be replaced."""

    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    error = await failure_of(httpx_upstream, head_to(80, host="api.example"))
    assert error.kind is FailureKind.DNS


async def test_an_old_answer_serves_while_it_is_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.upstream.resolve.REFRESH_SECONDS", -1.0)
    names = Names(api=[V4])
    resolver = Resolver(names.look_up)
    first = await resolver.resolve("api", 1)
    names.table["api"] = [V4_ELSEWHERE]
    assert await resolver.resolve("api", 1) == first
    await asyncio.sleep(0.01)
    assert await resolver.resolve("api", 1) == [(socket.AF_INET, ("127.0.0.2", 1))]
    names.table["api"] = socket.gaierror(socket.EAI_AGAIN, "try again")
    await asyncio.sleep(0.01)
    await resolver.resolve("api", 1)
    await asyncio.sleep(0.01)
    assert await resolver.resolve("api", 1), "a failed refresh leaves the old answer"
    resolver.close()


async def test_an_address_is_not_asked_for() -> None:
    resolver = Resolver(Names().look_up)
    assert await resolver.resolve("127.0.0.1", 1) == [(socket.AF_INET, ("127.0.0.1", 1))]
    assert await resolver.resolve("::1", 1) == [(socket.AF_INET6, ("::1", 1, 0, 0))]


async def test_families_take_turns() -> None:
    names = Names(api=[V6, V6_ELSEWHERE, V4, V4_ELSEWHERE])
    addresses = await Resolver(names.look_up).resolve("api", 1)
    assert [address[1][0] for address in addresses] == ["::1", "127.0.0.1", "::2", "127.0.0.2"]


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    async with _client(Names(api=[V4_ELSEWHERE, V4])) as upstream, ScriptedServer([answer(b"hello")]) as server:
        response = await upstream.send(head_to(server.port, host="api"), b"{}")
        assert await response.read(100) == b"hello"


async def test_the_next_address_is_tried_when_one_is_slow(monkeypatch: pytest.MonkeyPatch, deaf_port: int) -> None:
    monkeypatch.setattr("gateway.upstream.connect.STAGGER_SECONDS", 0.02)
    names = Names(api=[(socket.AF_INET, ("127.0.0.1", deaf_port)), V4])
    async with _client(names) as upstream, ScriptedServer([answer(b"hello")]) as server:
        response = await upstream.send(head_to(server.port, host="api"), b"{}")
        assert await response.read(100) == b"hello"


async def test_when_no_address_answers_the_first_refusal_counts() -> None:
    async with _client(Names(api=[V4, V4_ELSEWHERE])) as upstream:
        error = await failure_of(upstream, head_to(free_port(), host="api"))
        assert error.kind is FailureKind.CONNECT


@pytest.mark.skipif(not socket.has_dualstack_ipv6() or not os.path.exists("/proc/net/if_inet6"), reason="needs IPv6")
async def test_ipv6_is_reached_by_address(upstream: Upstream, head_for: Heads) -> None:
    try:
        server = await ScriptedServer([answer(b"hello")], host="::1").__aenter__()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    try:
        response = await upstream.send(head_for(server, host="::1"), b"{}")
        assert await response.read(100) == b"hello"
        assert server.requests[0].headers["host"] == f"[::1]:{server.port}"
    finally:
        await server.__aexit__(None, None, None)
