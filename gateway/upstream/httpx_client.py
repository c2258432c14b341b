"""The same contract on httpx2, for ``server.upstream_client: httpx``: proxies, HTTP/2, and a second opinion.

It works on httpx2's transports, below its client, so there are no cookies, redirects, default headers or
environment. It costs many times what `http1.py` does. Its own limits: headers past 100 KiB are reported as
malformed instead of too large, names are not cached, bytes that follow an answer are taken for the next one, and a
request met by a closing connection is not sent again, because httpcore does not tell whether anything came back.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.base import BodySink, Origin, RequestHead, Sending
from gateway.upstream.connect import name_of
from gateway.upstream.http1 import KEEP_IDLE_SECONDS
from gateway.upstream.inflate import Inflater, inflater_for
from gateway.upstream.pool import MAX_CONNECTIONS, WAIT_SECONDS
from gateway.upstream.response_parser import MAX_HEAD_BYTES, MAX_HEADERS

if TYPE_CHECKING:
    import httpx2

_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""A peer that closes during the handshake: without TLS's notice and with it. Python 3.11.2 has the second for both."""


class HttpxUpstream:
    """Implements `Upstream`; *proxy* is used for all origins but unix sockets."""

    def __init__(
        self,
        *,
        proxy: str | None = None,
        http2: bool = False,
        max_connections_per_origin: int = MAX_CONNECTIONS,
        keep_idle_seconds: float = KEEP_IDLE_SECONDS,
    ) -> None:
        import httpx2  # noqa: F401 - now, so that it need not be loaded while the first request waits

        self._proxy = proxy
        self._http2 = http2
        self._max_connections = max_connections_per_origin
        self._keep_idle_seconds = keep_idle_seconds
        self._transports: dict[Origin, httpx2.AsyncHTTPTransport] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def send(
        self, head: RequestHead, body: bytes, extra_headers: bytes = b"", sending: Sending | None = None
    ) -> HttpxResponse:
        import httpx2

        origin = head.origin
        progress = _Progress(sending)
        transport = self._transports.get(origin) or self._new_transport(origin)
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        request = httpx2.Request(
            head.method,
            f"{origin.scheme}://{host}:{origin.port}{head.path}",
            headers=_headers(head, body, extra_headers),
            content=body,
            extensions={
                "timeout": {"connect": origin.connect_timeout_seconds, "pool": WAIT_SECONDS},
                "trace": progress.trace,
            },
        )
        try:
            response = await transport.handle_async_request(request)
        except httpx2.HTTPError as error:
            raise _translate(error, name_of(origin), progress.sent) from None
        answer = HttpxResponse(self, response, name_of(origin))
        try:
            _check_head(response, name_of(origin))
            answer.prepare()
        except ProviderError:
            answer.close()
            raise
        return answer

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run *work* in a task that ends with this client at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _new_transport(self, origin: Origin) -> httpx2.AsyncHTTPTransport:
        import httpx2

        transport = self._transports[origin] = httpx2.AsyncHTTPTransport(
            verify=origin.ssl_context or True,
            trust_env=False,
            http2=self._http2,
            limits=httpx2.Limits(
                max_connections=self._max_connections,
                max_keepalive_connections=self._max_connections if origin.keep_alive else 0,
                keepalive_expiry=self._keep_idle_seconds,
            ),
            proxy=self._proxy if origin.unix_path is None else None,
            uds=origin.unix_path,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)] if origin.unix_path is None else None,
        )
        return transport


class HttpxResponse:
    """Implements `UpstreamResponse`."""

    def __init__(self, upstream: HttpxUpstream, response: httpx2.Response, name: str) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._upstream = upstream
        self._response = response
        self._name = name
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pump_task: asyncio.Task[None] | None = None
        self._closed = False
        self._inflater: Inflater | None = None

    def prepare(self) -> None:
        """Refuse an encoding that cannot be undone."""
        self._inflater = inflater_for(self.headers.get("content-encoding", ""))

    async def read(self, limit_bytes: int) -> bytes:
        pieces, size = [], 0
        try:
            async for piece in self._pieces():
                pieces.append(piece)
                size += len(piece)
                if size > limit_bytes:
                    raise ProviderError(
                        FailureKind.TOO_LARGE, f"the upstream's answer is larger than {limit_bytes} bytes"
                    )
        except (ProviderError, asyncio.CancelledError):
            self.close()
            raise
        return b"".join(pieces)

    def stream(self, sink: BodySink) -> None:
        self._pump_task = self._upstream.run(self._pump(sink))

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pump_task is not None:
            self._pump_task.cancel()
        self._upstream.run(self._response.stream.aclose())  # type: ignore[union-attr]  # an async client's stream is one

    async def _pump(self, sink: BodySink) -> None:
        error: ProviderError | None = None
        try:
            async for piece in self._pieces():
                await self._flowing.wait()
                sink.feed(piece)
        except ProviderError as broken:
            error = broken
        if not self._closed:
            sink.finish(error)

    async def _pieces(self) -> AsyncIterator[bytes]:
        """The body, inflated; the connection is free again when it ends."""
        import httpx2

        began = False
        stream = self._response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        try:
            async for piece in stream:
                began = True
                data = self._inflater.feed(piece) if self._inflater is not None else piece
                if data:
                    yield data
        except httpx2.HTTPError as error:
            raise _translate(error, self._name, sent=True, began=began) from None
        finally:
            await stream.aclose()
        if self._inflater is not None:
            self._inflater.finish()


class _Progress:
    """Follows one request through httpcore's trace events."""

    def __init__(self, sending: Sending | None) -> None:
        self._sending = sending
        self.sent = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = True
            if self._sending is not None:
                self._sending.sent = True


def _headers(head: RequestHead, body: bytes, extra_headers: bytes) -> list[tuple[bytes, bytes]]:
    # The wire form is the one place where the headers are complete: request line, headers, "content-length: ".
    lines = head.wire.split(b"\r\n")[1:-1] + [line for line in extra_headers.split(b"\r\n") if line]
    headers = []
    for line in lines:
        name, _, value = line.partition(b":")
        headers.append((name, value.strip()))
    headers.append((b"content-length", b"%d" % len(body)))
    return headers


def _check_head(response: httpx2.Response, name: str) -> None:
    if response.status_code == 101:
        raise ProviderError(FailureKind.MALFORMED, f"{name}: the answer is not proper HTTP", detail="status 101")
    raw = response.headers.raw
    if len(raw) > MAX_HEADERS or sum(len(key) + len(value) + 4 for key, value in raw) > MAX_HEAD_BYTES:
        raise ProviderError(FailureKind.TOO_LARGE, f"{name}: the answer's headers are too large")


def _translate(error: httpx2.HTTPError, name: str, sent: bool, began: bool = False) -> ProviderError:
    import httpx2

    # A handshake that waits for the network leaves SSLWantReadError behind in the chain, which is no failure.
    causes = [cause for cause in _causes(error) if not isinstance(cause, ssl.SSLWantReadError)]
    detail = "; ".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    broken = FailureKind.INTERRUPTED if began else FailureKind.RESET
    match error:
        case httpx2.PoolTimeout():
            kind, words = FailureKind.NO_CAPACITY, "all connections are in use"
        case httpx2.ConnectTimeout():
            kind, words = FailureKind.CONNECT_TIMEOUT, "connecting took too long"
        case httpx2.ConnectError() if any(isinstance(cause, socket.gaierror) for cause in causes):
            kind, words = FailureKind.DNS, "the name does not resolve"
        case httpx2.ConnectError() if any(isinstance(cause, _CLOSED) for cause in causes):
            kind, words = FailureKind.CONNECT, "the connection closed during the TLS handshake"
        case httpx2.ConnectError() if any(isinstance(cause, ssl.SSLError) for cause in causes):
            kind, words = FailureKind.TLS, "no trusted TLS connection"
        case httpx2.NetworkError() | httpx2.ProxyError() if not sent:
            kind, words = FailureKind.CONNECT, "no connection"
        case httpx2.RemoteProtocolError() if str(error).startswith(("Server disconnected", "peer closed")):
            kind, words = broken, "the connection broke before the answer was complete"
        case httpx2.ProtocolError():
            kind, words = FailureKind.MALFORMED, "the answer is not proper HTTP"
        case _:
            kind, words = broken, "the connection broke before the answer was complete"
    return ProviderError(kind, f"{name}: {words}", sent=sent, detail=detail)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
