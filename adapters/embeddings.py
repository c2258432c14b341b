"""The two encodings of embedding vectors, and the turn from one to the other."""

from __future__ import annotations

import base64
import struct
from typing import Final

import msgspec

from adapters.answers import UnreadableError


class _Vector(msgspec.Struct, gc=False):
    embedding: msgspec.Raw = msgspec.Raw(b"null")


_decode_vectors = msgspec.json.Decoder(list[_Vector]).decode
_STARTS_WITH: Final = {"base64": b'"', "float": b"["}


def with_encoding(body: bytes, vectors: msgspec.Raw, encoding: str) -> bytes:
    """The answer *body* with its *vectors* in *encoding*: ``float`` lists, or ``base64`` of little-endian floats.

    Servers that know only one of the two send it whatever was asked for, and the OpenAI SDKs ask for base64 by default.
    Raises `UnreadableError` for vectors that are neither.
    """
    start = _STARTS_WITH[encoding]
    try:
        if all(bytes(vector.embedding)[:1] == start for vector in _decode_vectors(vectors)):
            return body
        whole = msgspec.json.decode(body)
        for item in whole["data"]:
            item["embedding"] = _encode(item["embedding"]) if encoding == "base64" else _decode(item["embedding"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, struct.error, OverflowError) as error:
        raise UnreadableError(str(error)) from None
    return msgspec.json.encode(whole)


def _encode(vector: list[float] | str) -> str:
    if isinstance(vector, str):
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _decode(vector: list[float] | str) -> list[float]:
    if not isinstance(vector, str):
        return vector
    packed = base64.b64decode(vector, validate=True)
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))
