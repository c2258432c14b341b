"""Reaching a server: TLS and whom it trusts, unix sockets, a proxy, and every way not to get through."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import Origin, RequestHead, Upstream
from gateway.upstream.connect import make_ssl_context
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.httpx_client import HttpxUpstream
from tests.fakes.scripted_server import Close, Hang, Reset, ScriptedServer, Step, answer
from tests.unit.upstream.unsent import failure_of, free_port, head_to

Heads = Callable[..., RequestHead]


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


async def test_an_unknown_authority_is_a_tlsfailure_of(
    upstream: Upstream, head_for: Heads, authority: trustme.CA
) -> None:
    async with ScriptedServer(ssl_context=_server_context(authority)) as server:
        error = await failure_of(upstream, head_for(server, ssl_context=make_ssl_context()))
        assert error.kind is FailureKind.TLS
        assert server.requests == []


async def test_a_certificate_for_another_name_is_a_tlsfailure_of(
    upstream: Upstream, head_for: Heads, authority: trustme.CA, ca_file: Path
) -> None:
    async with ScriptedServer(ssl_context=_server_context(authority, "api.example.org")) as server:
        error = await failure_of(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
        assert error.kind is FailureKind.TLS


async def test_a_server_without_tls_is_a_tlsfailure_of(upstream: Upstream, head_for: Heads, ca_file: Path) -> None:
    async with ScriptedServer(on_connect=[answer()]) as server:
        error = await failure_of(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
        assert error.kind is FailureKind.TLS


CLOSE_NOTIFY = bytes.fromhex("15 0303 0002 01 00")  # a record with an alert, in the clear (RFC 8446, 6.1)


@pytest.mark.parametrize(
    "ending", [[Close()], [CLOSE_NOTIFY, Close()], [Reset()]], ids=["closed", "closed with notice", "reset"]
)
async def test_a_handshake_broken_off_is_a_failure_to_connect(
    upstream: Upstream, head_for: Heads, ca_file: Path, ending: list[Step]
) -> None:
    async with ScriptedServer(on_connect=ending) as server:
        error = await failure_of(upstream, head_for(server, ssl_context=make_ssl_context(ca_file=ca_file)))
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
    error = await failure_of(upstream, head)
    assert error.kind is FailureKind.CONNECT
    assert path not in error.message
    async with ScriptedServer([answer(b"hello")], unix_path=path) as server:
        for _ in range(2):
            response = await upstream.send(head, b"{}")
            assert await response.read(100) == b"hello"
        assert server.connections == 1
        assert server.requests[0].headers["host"] == "engine"


async def test_a_refused_connection_is_a_failure_to_connect(upstream: Upstream) -> None:
    error = await failure_of(upstream, head_to(free_port()))
    assert error.kind is FailureKind.CONNECT
    assert "127.0.0.1:" in error.message


async def test_a_connection_nobody_accepts_runs_into_the_limit(upstream: Upstream, deaf_port: int) -> None:
    error = await failure_of(upstream, head_to(deaf_port, connect_timeout_seconds=0.2))
    assert error.kind is FailureKind.CONNECT_TIMEOUT


async def test_a_handshake_nobody_answers_runs_into_the_limit(
    upstream: Upstream, head_for: Heads, ca_file: Path
) -> None:
    async with ScriptedServer(on_connect=[Hang()]) as server:
        head = head_for(server, ssl_context=make_ssl_context(ca_file=ca_file), connect_timeout_seconds=0.2)
        error = await failure_of(upstream, head)
        assert error.kind is FailureKind.CONNECT_TIMEOUT
        await server.wait_until(lambda s: s.open_connections == 0)


async def test_cancelling_while_connecting_leaves_nothing_open(http1: Http1Upstream, deaf_port: int) -> None:
    task = asyncio.ensure_future(http1.send(head_to(deaf_port), b"{}"))
    await asyncio.sleep(0.02)
    assert http1.stats()[f"http://127.0.0.1:{deaf_port}"].open == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert http1.stats()[f"http://127.0.0.1:{deaf_port}"].open == 0


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
        error = await failure_of(http1, head_for(server))
        assert error.kind is FailureKind.CONNECT


async def test_a_proxy_is_used_when_it_is_named(head_for: Heads) -> None:
    async with ScriptedServer([answer(b"hello")]) as proxy:
        upstream = HttpxUpstream(proxy=f"http://127.0.0.1:{proxy.port}")
        response = await upstream.send(head_to(8080, host="api.example"), b"{}")
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
