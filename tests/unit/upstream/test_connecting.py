"""Reaching a server: TLS and whom it trusts, unix sockets, two address families, and every way not to get through."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.base import Origin, RequestHead, Upstream
from gateway.upstream.connect import make_ssl_context
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.httpx_client import HttpxUpstream
from gateway.upstream.resolve import Address, Resolver
from tests.fakes.scripted_server import Close, Hang, Reset, ScriptedServer, answer

Heads = Callable[..., RequestHead]


class Sent:
    sent = False


async def _failure(upstream: Upstream, head: RequestHead) -> ProviderError:
    """How sending fails, which must be before anything of the request has left."""
    sent = Sent()
    with pytest.raises(ProviderError) as caught:
        await upstream.send(head, b"{}", sending=sent)
    assert not caught.value.sent
    assert not sent.sent
    assert "sk-secret" not in caught.value.message + caught.value.detail
    return caught.value


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def _server_context(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_a_certificate_of_a_given_authority_is_trusted_and_the_connection_kept(
    upstream: Upstream, head_for: Heads, authority: trustme.CA, ca_file: Path
) -> None:
    context = make_ssl_context(ca_file=ca_file)
    body = bytes(300_000)
    async with ScriptedServer([answer(body)], ssl_context=_server_context(authority)) as server:
        for _ in range(2):
            response = await upstream.send(head_for(server, ssl_context=context), body)
            assert await response.read(1 << 20) == body
        assert server.connections == 1
        assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


async def test_an_unknown_authority_is_a_tls_failure(
    upstream: Upstream, head_for: Heads, authority: trustme.CA
) -> None:
    async with ScriptedServer(ssl_context=_server_context(authority)) as server:
        error = await _failure(upstream, head_for(server, ssl_context=make_ssl_context()))
        assert error.kind is FailureKind.TLS
        assert server.requests == []


async def test_a_certificate_for_another_name_is_a_tls_failure(
    upstream: Upstream, head_for: Heads, authority: trustme.CA, ca_file: Path
) -> None:
    async with ScriptedServer(ssl_context=_server_context(authority, "api.example.org")) as server:
        error = await _failure(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
        assert error.kind is FailureKind.TLS


async def test_a_server_without_tls_is_a_tls_failure(upstream: Upstream, head_for: Heads, ca_file: Path) -> None:
    async with ScriptedServer(on_connect=[answer()]) as server:
        error = await _failure(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
        assert error.kind is FailureKind.TLS


@pytest.mark.parametrize("ending", [Close(), Reset()], ids=["closed", "reset"])
async def test_a_handshake_broken_off_is_a_failure_to_connect(
    upstream: Upstream, head_for: Heads, ca_file: Path, ending: Close | Reset
) -> None:
    async with ScriptedServer(on_connect=[ending]) as server:
        error = await _failure(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
        assert error.kind is FailureKind.CONNECT


async def test_a_client_certificate_is_presented(
    upstream: Upstream, head_for: Heads, authority: trustme.CA, ca_file: Path, tmp_path: Path
) -> None:
    strict = _server_context(authority)
    strict.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(strict)
    mine = authority.issue_cert("gateway@example.org")
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    mine.cert_chain_pems[0].write_to_path(str(certificate))
    mine.private_key_pem.write_to_path(str(key))
    async with ScriptedServer([answer(b"hello")], ssl_context=strict) as server:
        context = make_ssl_context(ca_file=ca_file, client_cert=certificate, client_key=key)
        response = await upstream.send(head_for(server, ssl_context=context), b"{}")
        assert await response.read(100) == b"hello"
        # With TLS 1.3 a server refuses a client only after the handshake: the request meets a closed connection.
        with pytest.raises(ProviderError):
            await upstream.send(head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)), b"{}")
        assert len(server.requests) == 1


def test_a_context_always_verifies_and_ignores_the_key_log(
    ca_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    for context in (make_ssl_context(), make_ssl_context(ca_file=ca_file)):
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert context.keylog_filename is None


# Sockets


async def test_a_unix_socket_is_reached_and_its_path_stays_private(upstream: Upstream, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    head = RequestHead("POST", "/v1", Origin("engine", 80, unix_path=path), ())
    error = await _failure(upstream, head)
    assert error.kind is FailureKind.CONNECT
    assert path not in error.message
    async with ScriptedServer([answer(b"hello")], unix_path=path) as server:
        for _ in range(2):
            response = await upstream.send(head, b"{}")
            assert await response.read(100) == b"hello"
        assert server.connections == 1
        assert server.requests[0].headers["host"] == "engine"


async def test_a_refused_connection_is_a_failure_to_connect(upstream: Upstream) -> None:
    error = await _failure(upstream, _head(_free_port()))
    assert error.kind is FailureKind.CONNECT
    assert "127.0.0.1:" in error.message


async def test_a_connection_nobody_accepts_runs_into_the_limit(upstream: Upstream) -> None:
    with _full_backlog() as port:
        error = await _failure(upstream, _head(port, connect_timeout_seconds=0.2))
        assert error.kind is FailureKind.CONNECT_TIMEOUT


async def test_a_handshake_nobody_answers_runs_into_the_limit(
    upstream: Upstream, head_for: Heads, ca_file: Path
) -> None:
    async with ScriptedServer(on_connect=[Hang()]) as server:
        head = head_for(server, ssl_context=make_ssl_context(ca_file=ca_file), connect_timeout_seconds=0.2)
        error = await _failure(upstream, head)
        assert error.kind is FailureKind.CONNECT_TIMEOUT
        await server.wait_until(lambda s: s.open_connections == 0)


async def test_cancelling_while_connecting_leaves_nothing_open(http1: Http1Upstream, ca_file: Path) -> None:
    with _full_backlog() as port:
        task = asyncio.ensure_future(http1.send(_head(port), b"{}"))
        await asyncio.sleep(0.02)
        assert http1.stats()[f"http://127.0.0.1:{port}"].open == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert http1.stats()[f"http://127.0.0.1:{port}"].open == 0


async def test_cancelling_during_the_handshake_closes_the_connection(
    http1: Http1Upstream, head_for: Heads, ca_file: Path
) -> None:
    """Our own client alone: httpx2 leaves the socket to the garbage collector."""
    async with ScriptedServer(on_connect=[Hang()]) as server:
        head = head_for(server, ssl_context=make_ssl_context(ca_file=ca_file))
        task = asyncio.ensure_future(http1.send(head, b"{}"))
        await server.wait_until(lambda s: s.connections == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda s: s.open_connections == 0)


async def test_after_aclose_nothing_is_sent(http1: Http1Upstream, head_for: Heads) -> None:
    async with ScriptedServer() as server:
        await http1.aclose()
        error = await _failure(http1, head_for(server))
        assert error.kind is FailureKind.CONNECT


async def test_a_proxy_is_used_when_it_is_named(head_for: Heads) -> None:
    async with ScriptedServer([answer(b"hello")]) as proxy:
        upstream = HttpxUpstream(proxy=f"http://127.0.0.1:{proxy.port}")
        response = await upstream.send(_head(8080, host="api.example"), b"{}")
        assert await response.read(100) == b"hello"
        assert proxy.requests[0].path == "http://api.example:8080/v1"
        await upstream.aclose()


async def test_a_connection_that_opens_during_aclose_is_not_used(
    http1: Http1Upstream, head_for: Heads, ca_file: Path, authority: trustme.CA
) -> None:
    async with ScriptedServer(ssl_context=_server_context(authority)) as server:
        head = head_for(server, ssl_context=make_ssl_context(ca_file=ca_file))
        sending = asyncio.ensure_future(http1.send(head, b"{}"))
        await asyncio.sleep(0)
        await http1.aclose()
        with pytest.raises(ProviderError) as caught:
            await sending
        assert caught.value.kind is FailureKind.CONNECT
        assert server.requests == []


# Names


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
async def _client(names: Names):  # type: ignore[no-untyped-def]
    deadlines = Deadlines()
    upstream = Http1Upstream(deadlines, resolver=Resolver(names.look_up))
    yield upstream
    await upstream.aclose()
    deadlines.close()


async def test_a_name_is_asked_for_once_and_by_many_at_once() -> None:
    names = Names(api=[V4])
    async with _client(names) as upstream, ScriptedServer([Close()]) as server:
        head = _head(server.port, host="api")
        results = await asyncio.gather(*(upstream.send(head, b"{}") for _ in range(5)), return_exceptions=True)
        assert all(isinstance(result, ProviderError) for result in results)
        assert server.connections == 5
        assert names.questions == 1


async def test_a_name_that_does_not_resolve_is_remembered_for_a_while() -> None:
    names = Names(api=socket.gaierror(socket.EAI_NONAME, "Name or service not known"))
    async with _client(names) as upstream:
        for _ in range(3):
            error = await _failure(upstream, _head(80, host="api"))
            assert error.kind is FailureKind.DNS
        assert names.questions == 1


async def test_what_cannot_be_a_name_does_not_resolve(http1: Http1Upstream) -> None:
    error = await _failure(http1, _head(80, host="a" * 64 + ".example"))
    assert error.kind is FailureKind.DNS


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_httpx_too_reports_a_name_that_does_not_resolve(
    httpx_upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On asyncio's own loop, the only one whose lookups can be replaced."""

    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    error = await _failure(httpx_upstream, _head(80, host="api.example"))
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
        response = await upstream.send(_head(server.port, host="api"), b"{}")
        assert await response.read(100) == b"hello"


async def test_the_next_address_is_tried_when_one_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.upstream.connect.STAGGER_SECONDS", 0.02)
    with _full_backlog() as slow_port:
        names = Names(api=[(socket.AF_INET, ("127.0.0.1", slow_port)), V4])
        async with _client(names) as upstream, ScriptedServer([answer(b"hello")]) as server:
            response = await upstream.send(_head(server.port, host="api"), b"{}")
            assert await response.read(100) == b"hello"


async def test_when_no_address_answers_the_first_refusal_counts() -> None:
    async with _client(Names(api=[V4, V4_ELSEWHERE])) as upstream:
        error = await _failure(upstream, _head(_free_port(), host="api"))
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


def _head(port: int, host: str = "127.0.0.1", connect_timeout_seconds: float = 3.0) -> RequestHead:
    origin = Origin(host, port, connect_timeout_seconds=connect_timeout_seconds)
    return RequestHead("POST", "/v1", origin, (("authorization", "Bearer sk-secret"),))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def _full_backlog() -> Iterator[int]:
    """A port that takes no further connection: Linux ignores those beyond the queue of a listener."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as fillers:
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield int(listener.getsockname()[1])
