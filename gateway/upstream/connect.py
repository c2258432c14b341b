"""Opens connections: names, both address families in turn, TLS, and one typed error for each way to fail."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import Origin
from gateway.upstream.resolve import Address, Resolver

# RFC 8305 recommends 250 ms between attempts.
STAGGER_SECONDS = 0.25

RECEIVE_BUFFER_BYTES = 512 * 1024
"""Enough for 5 MB/s at a round trip of 100 ms, which no model's output comes near."""

_P = TypeVar("_P", bound=asyncio.BaseProtocol)


def make_ssl_context(
    ca_file: str | Path | None = None,
    client_cert: str | Path | None = None,
    client_key: str | Path | None = None,
) -> ssl.SSLContext:
    """A context that always verifies certificate and name, for TLS 1.2 and later.

    With *ca_file* only the authorities in it are trusted, otherwise those of the system, which OpenSSL finds
    through SSL_CERT_FILE and SSL_CERT_DIR where they are set. Nothing else is read from the environment: in
    particular SSLKEYLOGFILE, which would write out the session secrets, has no effect.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(ca_file)
    if client_cert is not None:
        context.load_cert_chain(client_cert, client_key)
    return context


def name_of(origin: Origin) -> str:
    """What messages call the origin: never the path of a unix socket."""
    if origin.name:
        return origin.name
    return f"[{origin.host}]:{origin.port}" if ":" in origin.host else f"{origin.host}:{origin.port}"


async def connect(origin: Origin, resolver: Resolver, make_protocol: Callable[[], _P]) -> _P:
    """A connected protocol, within the origin's connect limit; `ProviderError` with ``sent=False`` otherwise."""
    try:
        async with asyncio.timeout(origin.connect_timeout_seconds):
            return await _connect(origin, resolver, make_protocol)
    except OSError as error:
        kind, words = _kind_of(error)
        raise ProviderError(
            kind, f"{name_of(origin)}: {words}", sent=False, detail=f"{type(error).__name__}: {error}"
        ) from None


def _kind_of(error: OSError) -> tuple[FailureKind, str]:
    match error:
        case TimeoutError():
            return FailureKind.CONNECT_TIMEOUT, "connecting took too long"
        case socket.gaierror():
            return FailureKind.DNS, "the name does not resolve"
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():  # the second with a notice, or of some Pythons without
            return FailureKind.CONNECT, "the connection closed during the TLS handshake"
        case ssl.SSLError():
            return FailureKind.TLS, "no trusted TLS connection"
        case _:
            return FailureKind.CONNECT, "no connection"


async def _connect(origin: Origin, resolver: Resolver, make_protocol: Callable[[], _P]) -> _P:
    loop = asyncio.get_running_loop()
    server_hostname = origin.host if origin.ssl_context is not None else None
    if origin.unix_path is not None:
        _, protocol = await loop.create_unix_connection(
            make_protocol, origin.unix_path, ssl=origin.ssl_context, server_hostname=server_hostname
        )
        return protocol
    addresses = await resolver.resolve(origin.host, origin.port)
    try:
        sock = await _first_socket(loop, addresses)
    except OSError:
        resolver.distrust(origin.host, origin.port)
        raise
    try:
        _, protocol = await loop.create_connection(
            make_protocol, sock=sock, ssl=origin.ssl_context, server_hostname=server_hostname
        )
    except BaseException:
        sock.close()
        raise
    return protocol


async def _first_socket(loop: asyncio.AbstractEventLoop, addresses: list[Address]) -> socket.socket:
    """The first socket that connects. A further address is tried when the last one failed or is slow."""
    if len(addresses) == 1:
        return await _socket_to(loop, addresses[0])
    waiting = list(reversed(addresses))
    running: set[asyncio.Task[socket.socket]] = set()
    first_error: OSError | None = None
    try:
        while waiting or running:
            if waiting:
                running.add(loop.create_task(_socket_to(loop, waiting.pop())))
            patience = STAGGER_SECONDS if waiting else None
            done, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            winners = [task.result() for task in done if task.exception() is None]
            for late in winners[1:]:
                late.close()
            if winners:
                return winners[0]
            for task in done:
                error = task.exception()
                if not isinstance(error, OSError):
                    raise error or RuntimeError("a task ended without a result")
                first_error = first_error or error
    finally:
        for task in running:
            task.add_done_callback(_close_late_socket)
            task.cancel()
    raise first_error or OSError("the name has no addresses")


def _close_late_socket(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _socket_to(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, target = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel would let an upstream run megabytes ahead of a slow client before it feels any pressure.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        await loop.sock_connect(sock, target)
    except BaseException:
        sock.close()
        raise
    return sock
