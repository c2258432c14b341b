"""Every route of the data plane states who may use it, and lets in nobody else."""

from __future__ import annotations

import pytest

from gateway.data_plane.plane import ENDPOINTS, PREFIXES
from gateway.scopes import Scope
from tests.fakes.gateway import KEY, SERVERS, config, request, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer

ADMIN_KEY = "admin-key-0123456789"
WRONG = "gw-wrong-key-0123456789abcdef"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "prompt": "hi", "input": "hi"}


def test_every_endpoint_needs_a_key() -> None:
    assert {endpoint.path: endpoint.scope for endpoint in ENDPOINTS} == {
        endpoint.path: Scope.KEY for endpoint in ENDPOINTS
    }


@pytest.mark.parametrize("server", SERVERS)
async def test_no_route_answers_without_a_good_key_or_asks_anybody(server: str) -> None:
    async with ScriptedServer([whole()]) as upstream:
        settings = {**config(upstream), "auth": {"admin_key": ADMIN_KEY}}
        async with running_gateway(settings, server=server) as gateway:
            client = await gateway.connect()
            for path in [prefix + endpoint.path for endpoint in ENDPOINTS for prefix in PREFIXES]:
                for headers in (
                    [],
                    ["Authorization: Bearer " + WRONG],
                    ["Authorization: Bearer "],
                    ["Authorization: Basic " + KEY],
                    ["Authorization: " + KEY],
                    ["x-api-key: " + WRONG],
                    ["api-key: " + WRONG],
                    # The operator's key opens /admin and what tells about the gateway; it buys nothing.
                    ["Authorization: Bearer " + ADMIN_KEY],
                    ["Cookie: authorization=" + KEY],
                ):
                    await client.send(request(path, BODY, *headers, key=None))
                    answer = await client.answer()
                    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key"), f"{path} {headers}"

            assert upstream.requests == []


async def test_a_key_in_the_query_opens_nothing() -> None:
    async with ScriptedServer([whole()]) as upstream, running_gateway(config(upstream)) as gateway:
        answer = await gateway.post(f"/v1/chat/completions?key={KEY}&api_key={KEY}", BODY, key=None)

        assert answer.status == 401
