"""Takes apart what comes on a connection: the heads of answers within their limits, and the pieces of their bodies."""

from __future__ import annotations

import httptools

from adapters.errors import ProviderError
from adapters.types import FailureKind

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 200
MAX_INTERIM_ANSWERS = 20

NOT_HTTP = (httptools.HttpParserError, httptools.HttpParserUpgrade)
"""What `ResponseParser.http` raises; `ResponseParser.failure` tells what it stands for."""

# Names as upstreams spell them, to what we call them: nearly all headers are old acquaintances.
_header_names: dict[bytes, str] = {}
_MAX_HEADER_NAMES = 1024


class _StopParsingError(Exception):
    """Raised out of a parser callback; what is wrong stands in `ResponseParser`."""


class ResponseParser:
    """The answers of one connection, one after the other.

    A connection feeds `http` and looks at what has come of it, since a method in between would be a Python frame more
    for every read of a stream. When it has taken a whole answer it sets `status` and `last` back.
    """

    __slots__ = (
        "_failure",
        "_header_count",
        "_interim_answers",
        "_name",
        "headers",
        "http",
        "keep_alive",
        "last",
        "on_body",
        "pieces",
        "read_bytes",
        "status",
    )

    http: httptools.HttpResponseParser

    def __init__(self, name: str) -> None:
        """*name* is what messages call the origin."""
        self._name = name
        self._failure: ProviderError | None = None
        self._header_count = 0
        self._interim_answers = 0
        self.read_bytes = 0
        """What whoever feeds has counted since the answer began, or since the last piece of its body."""
        self.status = 0
        """Set once the head of an answer is complete, which an interim one never is."""
        self.headers: dict[str, str] = {}
        """By names in lower case; the values of a name that comes twice are joined by a comma."""
        self.pieces: list[bytes] = []
        """What has come of the body and has not been taken yet."""
        self.last: bytes | None = None
        """What was left of the body when the answer ended. There are no pieces then."""
        self.keep_alive = False
        """Whether the connection can carry another request, once the answer has ended."""
        # The parser calls what it finds under this name; a list's own method spares a Python frame for each piece.
        self.on_body = self.pieces.append
        self.http = httptools.HttpResponseParser(self)

    def close(self) -> None:
        """Nothing more will come. The parser leads back here: without it there is no cycle to collect."""
        del self.http

    def failure(self, error: Exception) -> ProviderError | None:
        """What is wrong with the answer, after `http` raised *error*; None where that is whole all the same."""
        if self.last is not None:
            self.keep_alive = False  # only what follows the answer is broken
            return None
        return self._failure or self._error(FailureKind.MALFORMED, "the answer is not proper HTTP", repr(error))

    def too_large(self, part: str) -> ProviderError:
        """The failure of an answer whose *part* has outgrown its limit."""
        return self._error(FailureKind.TOO_LARGE, f"the answer's {part} are too large")

    # What the parser tells

    def on_message_begin(self) -> None:
        if self.last is not None:
            raise _StopParsingError  # nobody has asked for a second answer
        self.headers = {}
        self._header_count = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer
        key = _header_names.get(name) or _learn_header_name(name)
        headers = self.headers
        self._header_count += 1
        text = value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        status = self.http.get_status_code()
        headers = self.headers
        if self._header_count > MAX_HEADERS or (self.read_bytes > MAX_HEAD_BYTES and _size(headers) > MAX_HEAD_BYTES):
            self._failure = self.too_large("headers")
            raise _StopParsingError
        if status < 200:
            self._interim_answers += 1
            if status < 100 or status == 101 or self._interim_answers > MAX_INTERIM_ANSWERS:
                self._failure = self._error(FailureKind.MALFORMED, "the answer is not proper HTTP", f"status {status}")
                raise _StopParsingError
            return
        self.status = status

    def on_message_complete(self) -> None:
        if self.status:
            self.last = b"".join(self.pieces)
            self.pieces.clear()
            self.keep_alive = self.http.should_keep_alive()
            self.read_bytes = self._interim_answers = 0

    def _error(self, kind: FailureKind, words: str, detail: str = "") -> ProviderError:
        return ProviderError(kind, f"{self._name}: {words}", detail=detail)


def _learn_header_name(name: bytes) -> str:
    key = name.lower().decode("latin-1")
    if len(_header_names) < _MAX_HEADER_NAMES:
        _header_names[name] = key
    return key


def _size(headers: dict[str, str]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.items())
