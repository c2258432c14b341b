"""What `server.upstream_client: httpx` is there for, with a gateway in front: HTTP/2, and a proxy that is named."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from tests.fakes.gateway import config, provider, running_gateway
from tests.fakes.openai_answers import good_stream, text_of, whole
from tests.fakes.scripted_server import ScriptedServer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:h2")

ANSWER = whole()


class Http2Server:
    """Speaks nothing but HTTP/2, and answers every request with the body of *raw*, an answer of HTTP/1.1."""

    def __init__(self, raw: bytes) -> None:
        self.paths: list[str] = []
        self.port = 0
        self._body = raw.partition(b"\r\n\r\n")[2]

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self.paths.append(dict(event.headers)[b":path"].decode())
                    elif isinstance(event, h2.events.StreamEnded):
                        connection.send_headers(
                            event.stream_id, [(":status", "200"), ("content-type", "application/json")]
                        )
                        connection.send_data(event.stream_id, self._body, end_stream=True)
                writer.write(connection.data_to_send())
        writer.close()


@contextlib.asynccontextmanager
async def http2_server(authority: trustme.CA, raw: bytes) -> AsyncIterator[Http2Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    server = Http2Server(raw)
    async with await asyncio.start_server(server, "127.0.0.1", 0, ssl=context) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def test_a_provider_that_speaks_http2_is_asked_in_it(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    async with http2_server(authority, ANSWER) as upstream:
        settings = config(0)
        address = {"base_url": f"https://127.0.0.1:{upstream.port}/v1", "ca_file": str(tmp_path / "ca.pem")}
        settings["providers"]["p1"] = provider(0, **address)
        async with running_gateway(settings, upstream_client="httpx") as gateway:
            answers = [await gateway.chat() for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200], answers[0].body
    assert upstream.paths == ["/v1/chat/completions"] * 2


@pytest.mark.parametrize("stream", [True, False])
async def test_providers_are_reached_by_the_proxy_that_is_named(stream: bool) -> None:
    async with ScriptedServer(good_stream() if stream else [ANSWER]) as proxy:
        settings: dict[str, Any] = config(9)
        settings["server"] = {"upstream_proxy": f"http://127.0.0.1:{proxy.port}"}
        settings["providers"]["p1"]["base_url"] = "http://provider.example/v1"
        async with running_gateway(settings, upstream_client="httpx") as gateway:
            answer = await gateway.chat(stream=stream)

    assert answer.status == 200
    assert not stream or text_of(answer.body)
    assert [request.path for request in proxy.requests] == ["http://provider.example/v1/chat/completions"]


@pytest.mark.parametrize(("keep_alive", "connections"), [(True, 1), (False, 2)])
async def test_a_providers_connections_are_kept_as_its_overrides_say(keep_alive: bool, connections: int) -> None:
    async with ScriptedServer([ANSWER]) as upstream:
        settings = config(upstream)
        settings["providers"]["p1"]["overrides"] = {"transport": {"keep_alive": keep_alive}}
        async with running_gateway(settings) as gateway:
            for _ in range(2):
                assert (await gateway.chat()).status == 200

        assert len({request.connection for request in upstream.requests}) == connections
