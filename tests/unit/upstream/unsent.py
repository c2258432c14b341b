"""Requests that fail before anything of them has left."""

from __future__ import annotations

import socket

import pytest

from adapters.errors import ProviderError
from gateway.upstream.base import Counts, Origin, RequestHead, Upstream


class Sent:
    sent = False
    counts: Counts | None = None


async def failure_of(upstream: Upstream, head: RequestHead) -> ProviderError:
    """How sending fails, which must be before anything of the request has left."""
    sent = Sent()
    with pytest.raises(ProviderError) as caught:
        await upstream.send(head, b"{}", sending=sent)
    assert not caught.value.sent
    assert not sent.sent
    assert "sk-secret" not in caught.value.message + caught.value.detail
    return caught.value


def head_to(port: int, host: str = "127.0.0.1", connect_timeout_seconds: float = 3.0) -> RequestHead:
    """A head with a secret that no failure may tell."""
    origin = Origin(host, port, connect_timeout_seconds=connect_timeout_seconds)
    return RequestHead("POST", "/v1", origin, (("authorization", "Bearer sk-secret"),))


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
