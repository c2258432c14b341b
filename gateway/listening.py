"""Takes the address to listen on, before anything slow starts, and says what helps when it cannot be had."""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Final

SEND_BUFFER_BYTES: Final = 512 * 1024


class ListenError(Exception):
    """The address cannot be listened on; the message says why and what helps."""


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to *host* and *port*, not listening yet: until it does, clients are refused at once."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ListenError(
            f"{host!r} is no address of this machine ({error.strerror}). Use --host 127.0.0.1 for this machine alone, "
            "or --host 0.0.0.0 for all networks."
        ) from None
    # IPv4 first: for many clients, `localhost` means nothing else.
    family, kind, protocol, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host not in ("", "::")))
        # Connections inherit it. Left alone it grows to megabytes, by which an upstream runs ahead of a slow client.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise ListenError(_explain(error, host, port)) from None
    sock.setblocking(False)
    return sock


def url_of(sock: socket.socket) -> str:
    """Where clients on this machine reach *sock*."""
    host, port = sock.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"


def _explain(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} on {host} is in use, perhaps by another gateway. Stop that program, or take another "
                f"port: --port {port + 1 if port < 65535 else port - 1}, or --port 0 for any free one."
            )
        case errno.EACCES:
            return f"port {port} needs special rights. Take one above 1023, such as --port 8080."
        case errno.EADDRNOTAVAIL:
            return f"this machine has no address {host}. Use --host 127.0.0.1, or --host 0.0.0.0 for all networks."
        case _:
            return f"cannot listen on {host}, port {port}: {os.strerror(error.errno or 0)}."
