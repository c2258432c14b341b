"""Unpacks an answer that came compressed although we asked for it plain, within bounds."""

from __future__ import annotations

import zlib

from adapters.errors import ProviderError
from adapters.types import FailureKind

MAX_TOTAL_BYTES = 16 * 1024 * 1024
MAX_RATIO = 100

# A few bytes of zeros may well shrink a thousandfold; the ratio tells nothing before this much came out.
_RATIO_APPLIES_FROM = 64 * 1024

_GZIP = 16 + zlib.MAX_WBITS
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS


def inflater_for(encoding: str) -> Inflater | None:
    """The inflater for a Content-Encoding value; None for a plain body, `ProviderError` for one we cannot read."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return Inflater(_GZIP)
    if name == "deflate":
        return Inflater(_ZLIB)
    raise _bad("the upstream answered in a content encoding that was not asked for", f"content-encoding: {name[:40]!r}")


class Inflater:
    """Inflates a body piece by piece; raises `ProviderError` BAD_ENCODING for a bomb or a broken body."""

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits)
        self._taken = 0
        self._given = 0

    def feed(self, data: bytes) -> bytes:
        """What *data* unpacks to, perhaps nothing yet."""
        if self._taken == 0 and self._window_bits == _ZLIB and not _has_zlib_header(data):
            # "deflate" is meant to be the zlib format, but servers send the bare one too.
            self._stream = zlib.decompressobj(_RAW)
        self._taken += len(data)
        pieces: list[bytes] = []
        while data:
            if self._stream.eof:
                # A gzip body may be several members in a row.
                self._stream = zlib.decompressobj(self._window_bits)
            try:
                piece = self._stream.decompress(data, self._room())
            except zlib.error as error:
                raise _bad("the upstream sent a broken compressed body", str(error)) from None
            self._given += len(piece)
            pieces.append(piece)
            if self._stream.unconsumed_tail and self._room() <= 1:
                raise _bad("the upstream sent a compressed body that unpacks to too much", f"{self._taken} bytes in")
            data = self._stream.unconsumed_tail or self._stream.unused_data
        return b"".join(pieces)

    def finish(self) -> None:
        """Check that the body was whole."""
        if self._taken and not self._stream.eof:
            raise _bad("the upstream sent a compressed body that breaks off", f"{self._taken} bytes in")

    def _room(self) -> int:
        """How much more may come out, at least 1, because zlib takes 0 for no limit."""
        limit = min(MAX_TOTAL_BYTES, max(_RATIO_APPLIES_FROM, self._taken * MAX_RATIO))
        return max(1, limit - self._given)


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)


def _bad(message: str, detail: str) -> ProviderError:
    return ProviderError(FailureKind.BAD_ENCODING, message, detail=detail)
