"""What the servers check in the head of a request before they read its body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import httptools

from gateway.data_plane.limits import WireLimits
from gateway.errors import (
    ExpectationFailedError,
    GatewayError,
    HeadersTooLargeError,
    MalformedHttpError,
    RequestTooLargeError,
    UnsupportedMediaTypeError,
)

# The one cancellation message that means the client is gone: nobody reads an answer any more.
CLIENT_LEFT = "the client left"

Headers = Sequence[tuple[bytes, bytes]]

_RARE = frozenset({b"content-encoding", b"transfer-encoding", b"expect"})

# A length of more digits is too large whatever it says, and int() of a very long one would be slow.
_LENGTH_DIGITS = 18

# RFC 3986, 3.2.2: a name, an IPv4 address, or an IPv6 one in brackets; then perhaps a port.
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?", re.ASCII)
# Hosts that have been looked at: there are few, and nearly every request names one of them.
_known_hosts: set[bytes] = set()
_MOST_KNOWN_HOSTS: Final = 256
_LONGEST_KNOWN_HOST: Final = 255


def too_large(limits: WireLimits) -> RequestTooLargeError:
    return RequestTooLargeError(
        f"The request body is larger than {limits.max_body_bytes} bytes. Send less, or raise server.max_body."
    )


def headers_too_large(limits: WireLimits) -> HeadersTooLargeError:
    return HeadersTooLargeError(
        f"The request has more than {limits.max_headers} headers, or more than {limits.max_header_bytes} bytes of them."
    )


def origin_form(method: bytes, target: bytes) -> bytes | None:
    """Path and query of a request's *target*; None where it has none of the forms that RFC 9112, 3.2, allows it."""
    if target == b"*":
        return target if method == b"OPTIONS" else None
    try:
        url = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError:
        return None
    if b"#" in target or url.userinfo is not None or (url.schema or b"http").lower() not in (b"http", b"https"):
        return None
    path = url.path or b"/"
    return path if url.query is None else b"%b?%b" % (path, url.query)


def is_usual(headers: Headers) -> bool:
    """Whether nothing but a content-length says how the body comes, and nothing is to be said before it does."""
    fields = dict(headers)
    return b"content-length" in fields and _RARE.isdisjoint(fields)


def check_head(headers: Headers, limits: WireLimits, *, http_version: str | None = None) -> GatewayError | None:
    """The reason to refuse a request by its head alone, or None. Header names are in lower case.

    *http_version* is given by a server that reads the wire itself; it adds what only matters there.
    """
    fields = dict(headers)
    # Nearly every request passes here: no header twice, none of the rare ones.
    if len(fields) == len(headers) <= limits.max_headers and _RARE.isdisjoint(fields):
        length = fields.get(b"content-length", b"0")
        fits = len(length) <= _LENGTH_DIGITS and length.isdigit() and int(length) <= limits.max_body_bytes
        if fits and (http_version is None or (http_version == "1.1" and fields.get(b"host") in _known_hosts)):
            return None
    if http_version is not None:
        error = _check_wire(headers, limits, http_version)
        if error is not None:
            return error
    for name, value in headers:
        error = _check_field(name, value.strip().lower(), limits)
        if error is not None:
            return error
    return None


def _check_wire(headers: Headers, limits: WireLimits, http_version: str) -> GatewayError | None:
    if http_version not in ("1.0", "1.1"):
        return MalformedHttpError(f"HTTP/{http_version} cannot be spoken here. Use HTTP/1.1.")
    if len(headers) > limits.max_headers:
        return headers_too_large(limits)
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and http_version == "1.1"):
        return MalformedHttpError(f"The request has {hosts or 'no'} Host headers. Send exactly one.")
    if hosts and not _is_host(next(value for name, value in headers if name == b"host").strip()):
        return MalformedHttpError("The Host header is no name or address of a host.")
    if http_version == "1.0" and b"transfer-encoding" in names:
        return MalformedHttpError("HTTP/1.0 knows no Transfer-Encoding. Use HTTP/1.1, or send a Content-Length.")
    return None


def _is_host(value: bytes) -> bool:
    if _HOST.fullmatch(value) is None:
        return False
    if len(_known_hosts) < _MOST_KNOWN_HOSTS and len(value) <= _LONGEST_KNOWN_HOST:
        _known_hosts.add(value)
    return True


def _check_field(name: bytes, value: bytes, limits: WireLimits) -> GatewayError | None:
    match name:
        case b"content-length":
            if not value.isdigit():
                return MalformedHttpError("The Content-Length header is not a number.")
            if len(value) > _LENGTH_DIGITS or int(value) > limits.max_body_bytes:
                return too_large(limits)
        case b"content-encoding":
            if value not in (b"", b"identity"):
                return UnsupportedMediaTypeError(
                    "Compressed request bodies are not accepted. Send the JSON as it is, without Content-Encoding."
                )
        case b"transfer-encoding":
            if value.rpartition(b",")[2].strip() != b"chunked":
                # RFC 9112, 6.3: where the body ends, nobody can tell.
                return MalformedHttpError("The last Transfer-Encoding of a request has to be 'chunked'.")
            if value != b"chunked":
                return UnsupportedMediaTypeError("The only Transfer-Encoding accepted for a request is 'chunked'.")
        case b"expect":
            if value != b"100-continue":
                return ExpectationFailedError("The only expectation understood is '100-continue'.")
    return None
