"""uvicorn's HTTP/1.1 protocol, but for the data plane's routes, which are answered without ASGI in between."""

from __future__ import annotations

import logging
import urllib.parse
from typing import Any, Final

import httptools

from gateway.data_plane.exchange import ClientHead, Handler
from gateway.data_plane.known_head import KnownHead, known_head
from gateway.data_plane.request_head import check_head, headers_too_large, is_usual, origin_form, too_large
from gateway.data_plane.uvicorn_exchange import UvicornExchange
from gateway.data_plane.uvicorn_input import AHEAD_REQUESTS, UvicornInput
from gateway.deadlines import NEVER
from gateway.errors import MalformedHttpError, MethodNotAllowedError

_log = logging.getLogger(__name__)

# By RFC 9110, 6.5.1, none may be a trailer. The parser believes them all the same: it would read nothing more of a
# connection that we keep open.
_NEVER_TRAILERS: Final = frozenset(
    (b"connection", b"proxy-connection", b"transfer-encoding", b"content-length", b"upgrade")
)


class DataPlaneProtocol(UvicornInput):
    """Reads the requests of one connection.

    At the end of a request's head it is decided who answers: the data plane by a `UvicornExchange`, or uvicorn, for
    which the head is then replayed.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._upgrade_offered = False
        self._known: KnownHead | None = None
        self._to_know: tuple[ClientHead, Handler] | None = None

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            self._discard(data)
            return
        known = self._known
        if known is not None and not self._fed_bytes and self._answer_known(known, data):
            return
        self._feed_bytes = len(data)
        self._fed_bytes += self._feed_bytes
        try:
            self.parser.feed_data(data)
            if self._to_know is not None:
                self._known, self._to_know = known_head(data, *self._to_know), None
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserCallbackError as error:
            _log.error("reading a request failed", exc_info=error.__context__)
            self._refuse(MalformedHttpError("The request could not be read."))
        except httptools.HttpParserError as error:
            self._refuse(MalformedHttpError(f"The request is not valid HTTP: {error}."))
        self._watch_input()

    def _answer_known(self, known: KnownHead, data: bytes) -> bool:
        """Answer the request in *data* without parsing it, if it is a whole one with a head we know."""
        if self._in_head or self._in_cold_body or not self.cycle.response_complete:
            return False  # it is part of another message, or has to wait for its turn
        body = known.body_in(data)
        if body is None or len(body) > self._limits.max_body_bytes:
            return False
        exchange = UvicornExchange(self, self.transport, known.handler, known.head, self.peer, body)
        exchange.complete = True
        self.cycle = self._active = exchange  # type: ignore[assignment]  # as in `_enqueue`
        self._input_watch.deadline = NEVER
        exchange.begin()
        return True

    def on_message_begin(self) -> None:
        self.url = b""
        self._head = []
        self._in_head = True
        self._body_bytes = self._body_mark = self._padding_mark = self._padding_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        # Outside the head it is a trailer: taking that for a header would let it overrule one.
        if self._in_head:
            self._head.append((name.lower(), value))
        elif name.lower() in _NEVER_TRAILERS:
            self._refuse(MalformedHttpError(f"{name.decode('latin-1')} has to stand in the head, not in a trailer."))

    def on_headers_complete(self) -> None:
        if self._deaf:
            return
        self._in_head = False
        self._head_deadline = NEVER
        parser, head = self.parser, self._head
        if parser.should_upgrade() and not self._offers_websocket():
            if parser.get_method() == b"CONNECT":
                # uvicorn would answer, and then neither read nor close the connection.
                self._refuse(MethodNotAllowedError("This is no proxy.", headers={"allow": "GET, HEAD, POST"}))
            else:
                self._upgrade_offered = True
            return
        version = parser.get_http_version()
        error = check_head(head, self._limits, http_version=version)
        # What was read since the last message ended, or just now, bounds the head's size from above.
        limit = self._limits.max_header_bytes
        if error is None and (self._fed_bytes > limit or self._feed_bytes > limit) and self._head_bytes() > limit:
            error = headers_too_large(self._limits)
        if error is not None:
            self._refuse(error)
            return
        method = parser.get_method()
        path = self.url.decode("latin-1")
        handler = self.plane.match(method, path)
        if handler is None:
            target = origin_form(method, self.url)
            if target is None:
                self._refuse(MalformedHttpError("The target of the request is neither a path nor a URL of one."))
                return
            path = urllib.parse.unquote(target.partition(b"?")[0].decode("latin-1"))
            handler = self.plane.match(method, path)
            if handler is None:
                self.url = target
                self._replay_head()
                return
        client_head = ClientHead(method.decode("ascii"), path, head)
        exchange = UvicornExchange(self, self.transport, handler, client_head, self.peer)
        exchange.http_1_0 = version == "1.0"
        exchange.keep_alive = not exchange.http_1_0 and parser.should_keep_alive()
        # The first of what was just read, and of the kind that nearly all requests are.
        if exchange.keep_alive and self._fed_bytes == self._feed_bytes and is_usual(head):
            self._to_know = client_head, handler
        self._in_body = exchange
        self._enqueue(exchange)

    def on_body(self, body: bytes) -> None:
        if self._deaf:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.max_body_bytes:
            self._refuse(too_large(self._limits))
            return
        exchange = self._in_body
        if exchange is None:
            super().on_body(body)
        elif not exchange.body:
            exchange.body = body
        elif isinstance(exchange.body, bytearray):
            exchange.body += body
        else:
            exchange.body = bytearray(exchange.body) + body

    def on_message_complete(self) -> None:
        if self._deaf or self._upgrade_offered:
            return
        self._fed_bytes = 0
        exchange = self._in_body
        if exchange is None:
            self._in_cold_body = False
            super().on_message_complete()
            self._deaf = not self.parser.should_keep_alive()
            return
        self._in_body = None
        exchange.complete = True
        if not exchange.keep_alive:
            self._deaf = True
        if self._active is exchange:
            exchange.begin()

    def _offers_websocket(self) -> bool:
        return self._should_upgrade_to_ws() and any(
            name == b"upgrade" and value.lower() == b"websocket" for name, value in self._head
        )

    def _head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self._head)

    def _replay_head(self) -> None:
        url, head = self.url, self._head
        super().on_message_begin()
        self.url = url
        self.headers.extend(head)
        self.expect_100_continue = any(name == b"expect" for name, _ in head)
        super().on_headers_complete()
        self._in_cold_body = not (self.parser.should_upgrade() and self._should_upgrade())
        if len(self.pipeline) < AHEAD_REQUESTS:
            # uvicorn stops to read here, and would not notice when the client leaves.
            self.flow.resume_reading()

    def _upgrade(self, rest: bytes) -> None:
        """The parser has stopped behind a head that offers another protocol."""
        if self._deaf:
            self._watch_input()
        elif self._upgrade_offered:
            # Some clients (Java's own, for one) offer HTTP/2 with each POST. The parser takes no body after an offer,
            # so the request is read once more as if there had been none.
            self._upgrade_offered = False
            version = self.parser.get_http_version().encode("ascii")
            lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
            lines += [b"%b: %b" % (name, value) for name, value in self._head if name != b"upgrade"]
            self.parser = _new_parser(self)
            self._fed_bytes = 0
            self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)
        elif self._should_upgrade():
            self._deadlines.discard(self._input_watch)
            self.handle_websocket_upgrade()
        else:
            self._deaf = True
            self._watch_input()


def _new_parser(protocol: DataPlaneProtocol) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    # What follows a request to close is then read as a message, and dropped, instead of being an error.
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser
