"""The keyed digest under which keys are stored and looked up."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

_BLOCK_BYTES: Final = hashlib.sha256().block_size
_CHECK: Final = b"switchgear: this is the right pepper"


class KeyDigest:
    """HMAC-SHA256 under the pepper. Calling it with a secret's bytes gives 32 bytes.

    The two hash states of RFC 2104 that depend on the pepper alone are made once: that halves the cost of
    `hmac.digest`, and this is paid by every request.
    """

    __slots__ = ("_inner", "_outer", "check_value")

    def __init__(self, pepper: bytes) -> None:
        block = hashlib.sha256(pepper).digest() if len(pepper) > _BLOCK_BYTES else pepper
        block = block.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
        self.check_value = hmac.digest(pepper, _CHECK, "sha256").hex()
        """Tells peppers apart without telling what they are; no key has it as its digest, for the text has spaces."""

    def __call__(self, secret: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(secret)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()


class RememberedDigest:
    """A `KeyDigest` that remembers its answers, for callers that see the same few secrets all day.

    They are remembered under a keyed BLAKE2b of the whole secret, with a key only this process knows: as safe as the
    digest itself, and a quarter of its time, for Python brings that function along instead of asking OpenSSL.
    """

    __slots__ = ("_digest", "_key", "_known", "_most")

    def __init__(self, digest: Callable[[bytes], bytes], most: int = 10_000) -> None:
        self._digest = digest
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, bytes] = {}
        self._most = most

    def __call__(self, secret: bytes) -> bytes:
        mark = hashlib.blake2b(secret, key=self._key, digest_size=32).digest()
        known = self._known.get(mark)
        if known is None:
            if len(self._known) >= self._most:  # somebody is guessing keys
                self._known.clear()
            known = self._known[mark] = self._digest(secret)
        return known
