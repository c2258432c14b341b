"""Fetches what a client points at, without lending it our place in the network."""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from adapters.errors import ProviderError
from adapters.patches import invalid
from adapters.types import FailureKind
from gateway.deadlines import Deadlines
from gateway.upstream.base import Origin, RequestHead
from gateway.upstream.connect import make_ssl_context
from gateway.upstream.http1 import Http1Upstream
from gateway.upstream.public import PublicResolver
from gateway.upstream.resolve import Resolver

CODE: Final = "invalid_image_url"
_MOST_REDIRECTS: Final = 3
_MOST_CHARACTERS: Final = 8192
_SECONDS: Final = 10.0
_MOST_CONNECTIONS: Final = 8
"""To one server, for all clients together."""
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9.+-]{1,64}/[a-z0-9.+-]{1,64}")
_HEADERS: Final = (("accept", "image/*"), ("user-agent", "switchgear"))
# One message for all of these: telling them apart would tell of our network.
_NOT_REACHED: Final = "no public server answers there"


@dataclass(frozen=True, slots=True)
class _Place:
    """An address, checked as far as that goes before it is resolved."""

    origin: Origin
    path: str
    url: str


class Fetcher:
    """A small HTTP client for addresses from outside.

    Only http and https, only public addresses unless *private* is set, at most three redirects, each checked like the
    first; a limit in size and time. Nothing of the client's or of ours is sent along.
    """

    def __init__(self, deadlines: Deadlines, *, private: bool = False, seconds: float = _SECONDS) -> None:
        """*private* also allows addresses of our own network, for operators whose images are there."""
        resolver = Resolver() if private else PublicResolver()
        self._seconds = seconds
        self._context: ssl.SSLContext | None = None
        self._client = Http1Upstream(
            deadlines, max_connections_per_origin=_MOST_CONNECTIONS, keep_idle_seconds=2.0, resolver=resolver
        )

    async def fetch(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        """Media type and bytes of what stands at *url*.

        Raises `ProviderError` BAD_REQUEST with a message that tells nothing of where we looked.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(url, most_bytes)
        except TimeoutError:
            raise invalid("", f"it took longer than {self._seconds:g} s", CODE) from None

    async def aclose(self) -> None:
        """Drop all connections."""
        await self._client.aclose()

    async def _follow(self, url: str, most_bytes: int) -> tuple[str, bytes]:
        for _ in range(_MOST_REDIRECTS + 1):
            place = self._place(url)
            found = await self._get(place, most_bytes)
            if not isinstance(found, str):
                return found
            url = found
        raise invalid("", "it redirects too often", CODE)

    async def _get(self, place: _Place, most_bytes: int) -> tuple[str, bytes] | str:
        """What stands at one place, or the address that it points on to."""
        try:
            response = await self._client.send(RequestHead("GET", place.path, place.origin, _HEADERS), b"")
        except ProviderError as error:
            raise _refused(error, most_bytes) from None
        except ValueError:
            raise invalid("", "it is not a proper address", CODE) from None
        try:
            if response.status in _REDIRECTS and "location" in response.headers:
                return urljoin(place.url, response.headers["location"])
            if response.status != 200:
                raise invalid("", f"the server answers {response.status}", CODE)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if not _MEDIA_TYPE.fullmatch(media_type) or not media_type.startswith("image/"):
                raise invalid("", "what is there is not an image", CODE)
            try:
                return media_type, await response.read(most_bytes)
            except ProviderError as error:
                raise _refused(error, most_bytes) from None
        finally:
            response.close()

    def _place(self, url: str) -> _Place:
        parts = _split(url)
        host = (parts.hostname or "").rstrip(".")
        try:
            ascii_host = host if ":" in host else host.encode("idna").decode("ascii")
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except (UnicodeError, ValueError):
            raise invalid("", "it is not a proper address", CODE) from None
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?") if parts.query else ""
        context = self._ssl_context() if parts.scheme == "https" else None
        return _Place(Origin(ascii_host, port, context, name="the server"), path + query, url)

    def _ssl_context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = make_ssl_context()
        return self._context


def _split(url: str) -> SplitResult:
    """The parts of *url*; BAD_REQUEST unless it is a plain address of http or https."""
    if len(url) > _MOST_CHARACTERS:
        raise invalid("", f"it is longer than {_MOST_CHARACTERS} characters", CODE)
    try:
        parts = urlsplit(url)
        hostname = parts.hostname
    except ValueError:
        raise invalid("", "it is not a proper address", CODE) from None
    if parts.scheme not in ("http", "https") or not hostname:
        raise invalid("", "only http:// and https:// addresses, and data: URIs, are understood", CODE)
    if parts.username is not None or parts.password is not None:
        raise invalid("", "it holds a user name or password", CODE)
    return parts


def _refused(error: ProviderError, most_bytes: int) -> ProviderError:
    if error.kind is FailureKind.TOO_LARGE:
        return invalid("", f"it is larger than {most_bytes >> 20} MiB", CODE)
    return invalid("", _NOT_REACHED, CODE)
