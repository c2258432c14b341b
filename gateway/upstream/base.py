"""What the pipeline asks of an HTTP client; `http1.py` and `httpx_client.py` implement it under one test suite."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from adapters.errors import ProviderError
from adapters.types import Usage


@dataclass(frozen=True, slots=True)
class Origin:
    """A server to connect to. Equal origins share connections.

    *ssl_context* is None for plain http. *unix_path* wins over host and port, which then only name the server in
    logs and in the Host header.
    """

    host: str
    port: int
    ssl_context: ssl.SSLContext | None = None
    unix_path: str | None = None
    connect_timeout_seconds: float = 3.0
    name: str = ""
    """What messages call it, the provider's name as a rule; an address would tell clients of internal hosts."""
    keep_alive: bool = True
    """False: a fresh connection for each request, for servers that drop kept-alive ones."""

    def __hash__(self) -> int:
        # Asked for at every request: the few that differ in nothing but the rest may as well collide.
        return hash((self.host, self.port, self.name))

    @property
    def scheme(self) -> str:
        return "https" if self.ssl_context is not None else "http"

    def __str__(self) -> str:
        return self.unix_path or f"{self.scheme}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Method, path and headers of the requests to one target, rendered once.

    Headers exclude Host, Content-Length, Connection and Accept-Encoding, which `wire` adds. Values are checked when
    the object is made: a control character in one is a ValueError, and so is a path with a space.
    """

    method: str
    path: str
    origin: Origin
    headers: tuple[tuple[str, str], ...]
    wire: bytes = field(init=False, repr=False)
    """Everything up to and including ``content-length: ``."""

    def __post_init__(self) -> None:
        default_port = 443 if self.origin.ssl_context is not None else 80
        host = f"[{self.origin.host}]" if ":" in self.origin.host else self.origin.host
        lines = [
            f"{self.method} {self.path} HTTP/1.1",
            f"host: {host}" if self.origin.port == default_port else f"host: {host}:{self.origin.port}",
            "accept-encoding: identity",
        ]
        if not self.origin.keep_alive:
            lines.append("connection: close")
        lines += [f"{name}: {value}" for name, value in self.headers]
        for line in lines:
            if any(ord(char) < 32 or ord(char) == 127 for char in line):
                # The value may be a secret: only the name is told.
                raise ValueError(f"header {line.partition(':')[0]!r} holds a control character")
        if not self.path.startswith("/") or not self.path.isascii() or " " in self.path:
            raise ValueError(f"{self.path!r} is no path for a request")
        lines.append("content-length: ")
        object.__setattr__(self, "wire", "\r\n".join(lines).encode("latin-1"))


class BodySink(Protocol):
    """Takes a body piece by piece, as it comes off the wire."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; never called after `finish`."""

    def finish(self, error: ProviderError | None) -> None:
        """The body is complete (None) or has broken off. Called exactly once, unless the response is closed first."""


class UpstreamResponse(Protocol):
    """An answer whose head has come."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; repeated ones joined with a comma."""

    async def read(self, limit_bytes: int) -> bytes:
        """The whole body; `ProviderError` TOO_LARGE past the limit, RESET or INTERRUPTED when it breaks off."""

    def stream(self, sink: BodySink) -> None:
        """Push the body into *sink* from now on, what has already come first, from within this call."""

    def pause(self) -> None:
        """Stop reading from the upstream; at most what is in flight still comes."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """Give the connection back if the body is complete, else drop it, at once. May be called again."""


class Counts(Protocol):
    """What a provider has counted of an answer so far."""

    def usage(self) -> Usage | None:
        """None when it has told nothing yet."""


class Sending(Protocol):
    """Tells whoever pays for a request whether any of it has left, and what it has come to."""

    sent: bool
    counts: Counts | None
    """Of those that count while they answer; by these an answer that breaks off is charged."""


class Upstream(Protocol):
    """An HTTP client without redirects, cookies, proxies or anything from the environment."""

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> UpstreamResponse:
        """Send a request and return when the head of the final answer is there (1xx are passed over).

        *extra_headers* are complete lines for this request alone; ``sending.sent`` is set when the first byte may
        have left. Raises `ProviderError` with a transport kind.
        Cancelling the call drops the connection. There is no time limit here but the origin's on connecting: the
        attempt keeps the clocks and cancels.
        """

    async def aclose(self) -> None:
        """Drop all connections."""
