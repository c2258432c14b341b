"""Requests with a key, and the clock that what is remembered goes by."""

from __future__ import annotations

from gateway.pipeline.authenticate import Authenticator, Headers, VirtualKey

FOREIGN = b"Bearer sk-ant-oat01-foreign-login-token"


class Clock:
    """Both clocks of an authenticator."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def bearer(secret: str) -> Headers:
    return [(b"host", b"gateway"), (b"authorization", b"Bearer " + secret.encode()), (b"accept", b"*/*")]


async def who(authenticator: Authenticator, headers: Headers) -> VirtualKey:
    return authenticator.check(authenticator.credentials(headers)) or await authenticator.look_up(
        authenticator.credentials(headers)
    )
