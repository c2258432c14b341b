"""Offers of another protocol are declined, and the request is read as it came."""

from __future__ import annotations

import pytest

from tests.fakes.fake_plane import Served
from tests.fakes.raw_client import post
from tests.unit.data_plane.wire.refused import refused


@pytest.mark.parametrize("path", ["/v1/echo", "/cold"])
async def test_an_offer_of_http_2_is_declined_and_the_body_read(served: Served, path: str) -> None:
    client = await served.connect()
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
    await client.send(post(path, b"one", *offer) + post(path, b"two", *offer)[:-1])
    assert (await client.answer()).body == b"one"
    await client.send(b"o")
    assert (await client.answer()).body == b"two"


async def test_an_offer_does_not_change_the_version_of_a_request(served: Served) -> None:
    client = await served.connect()
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n2"
    await client.send(b"POST /v1/stream HTTP/1.0\r\n" + offer)
    answer = await client.answer()
    assert "transfer-encoding" not in answer.headers
    assert answer.body == b"data: 0\n\ndata: 1\n\n"


async def test_an_offer_without_a_version_is_a_400(served: Served) -> None:
    request = b"POST /HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n2"
    await refused(served, request, 400, "malformed_http")


async def test_a_cold_upgrade_is_declined_by_answering(served: Served) -> None:
    client = await served.connect()
    await client.send(b"GET /cold HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert (await client.answer()).headers["x-cold"] == "yes"


@pytest.mark.parametrize("target", [b"/v1/echo", b"/cold", b"elsewhere:443"])
@pytest.mark.parametrize("host", [b"Host: x\r\n", b""])
async def test_connect_is_refused(served: Served, target: bytes, host: bytes, caplog: pytest.LogCaptureFixture) -> None:
    await refused(
        served, b"CONNECT " + target + b" HTTP/1.1\r\n" + host + b"\r\nPOST /v1/echo", 405, "method_not_allowed"
    )
    assert caplog.records == []
