"""What is said to a request before any upstream hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, HELLO, KEY, SERVERS, RunningGateway, chat_body, config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer


@pytest.fixture(params=SERVERS)
async def gateway(request: pytest.FixtureRequest) -> AsyncIterator[RunningGateway]:
    """A gateway whose only upstream must not be asked."""
    async with ScriptedServer() as server, running_gateway(config(server), server=request.param) as running:
        yield running
        assert server.requests == []
        assert running.services.in_flight == set()
        assert running.services.ledger.open_holds == 0


WRONG: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"model": "m"}, "messages"),
    (CHAT, {"messages": [HELLO]}, "model"),
    (CHAT, {"model": "", "messages": [HELLO]}, "model"),
    (CHAT, {"model": None, "messages": [HELLO]}, "model"),
    (CHAT, {"model": 5, "messages": [HELLO]}, "model"),
    (CHAT, {"model": "m\n", "messages": [HELLO]}, "model"),
    (CHAT, {"model": "m" * 257, "messages": [HELLO]}, "model"),
    (CHAT, {"model": "m", "messages": []}, "messages"),
    (CHAT, {"model": "m", "messages": None}, "messages"),
    (CHAT, {"model": "m", "messages": "hi"}, "messages"),
    (CHAT, chat_body(temperature=2.1), "temperature"),
    (CHAT, chat_body(temperature="hot"), "temperature"),
    (CHAT, chat_body(temperature=True), "temperature"),
    (CHAT, chat_body(top_p=-0.1), "top_p"),
    (CHAT, chat_body(presence_penalty=3), "presence_penalty"),
    (CHAT, chat_body(frequency_penalty=-3), "frequency_penalty"),
    (CHAT, chat_body(n=0), "n"),
    (CHAT, chat_body(n=129), "n"),
    (CHAT, chat_body(n=1.5), "n"),
    (CHAT, chat_body(max_tokens=0), "max_tokens"),
    (CHAT, chat_body(max_tokens=-1), "max_tokens"),
    (CHAT, chat_body(max_completion_tokens=0), "max_completion_tokens"),
    (CHAT, chat_body(stop=5), "stop"),
    (CHAT, chat_body(stop=["a", 5]), "stop"),
    (CHAT, chat_body(stream="yes"), "stream"),
    (CHAT, chat_body(stream=True, stream_options=[]), "stream_options"),
    (CHAT, chat_body(logit_bias=[]), "logit_bias"),
    (CHAT, chat_body(logprobs="x"), "logprobs"),
    (CHAT, chat_body(top_logprobs=21), "top_logprobs"),
    (CHAT, chat_body(tools={}), "tools"),
    (CHAT, chat_body(tools=[5]), "tools"),
    (CHAT, chat_body(tools=[{}] * 2049), "tools"),
    (CHAT, chat_body(tool_choice=5), "tool_choice"),
    (CHAT, chat_body(parallel_tool_calls="no"), "parallel_tool_calls"),
    (CHAT, chat_body(response_format="json"), "response_format"),
    (CHAT, chat_body(metadata=[]), "metadata"),
    (CHAT, chat_body(user=5), "user"),
    ("/v1/completions", {"model": "m"}, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": {}}, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": []}, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": ["a", 5]}, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": [-5]}, "prompt"),
    ("/v1/completions", {"model": "m", "prompt": "a", "logprobs": True}, "logprobs"),
    ("/v1/completions", {"model": "m", "prompt": "a", "best_of": 21}, "best_of"),
    ("/v1/embeddings", {"model": "m"}, "input"),
    ("/v1/embeddings", {"model": "m", "input": []}, "input"),
    ("/v1/embeddings", {"model": "m", "input": 5}, "input"),
    ("/v1/embeddings", {"model": "m", "input": "a", "dimensions": 0}, "dimensions"),
    ("/v1/embeddings", {"model": "m", "input": "a", "encoding_format": "hex"}, "encoding_format"),
]


async def test_a_wrong_parameter_is_named(gateway: RunningGateway) -> None:
    for path, body, param in WRONG:
        got = await gateway.post(path, body)
        assert (got.status, got.json["error"].get("param")) == (400, param), (body, got.body)
        assert got.error["type"] == "invalid_request_error"
        assert f"'{param}" in got.error["message"] or param in got.error["message"]
        assert got.error["request_id"] == got.headers["x-request-id"]


@pytest.mark.parametrize("body", [b"", b"[]", b'"text"', b"{", b'{"model":"m","model":"n"}', b'{"model":"\xff"}'])
async def test_a_body_that_is_no_object_is_a_400(gateway: RunningGateway, body: bytes) -> None:
    got = await gateway.post(CHAT, body)
    assert (got.status, got.error["type"]) == (400, "invalid_request_error")


async def test_an_unknown_model_is_a_404_that_names_what_is_near(gateway: RunningGateway) -> None:
    got = await gateway.post(CHAT, {"model": "mm", "messages": [HELLO]})
    assert (got.status, got.error["code"], got.error["param"]) == (404, "model_not_found", "model")
    assert "Did you mean: m?" in got.error["message"]
    far = await gateway.post(CHAT, {"model": "something else", "messages": [HELLO]})
    assert "GET /v1/models" in far.error["message"]
    assert gateway.metric("gateway_requests_total", status="404") == 2


@pytest.mark.parametrize("key", [None, "gw-wrong-key-0123456789abcdef"])
async def test_nobody_gets_in_without_a_key(gateway: RunningGateway, key: str | None) -> None:
    got = await gateway.chat(key=key)
    assert (got.status, got.error["code"]) == (401, "invalid_api_key")
    assert await gateway.rows() == []  # strangers cannot fill the log


async def test_a_refused_request_has_a_row(gateway: RunningGateway) -> None:
    await gateway.chat(temperature=3)
    row = await gateway.row()
    assert (row["status"], row["error_code"], row["model"], row["attempts"]) == (400, "invalid_value", "m", [])
    assert row["cost_nusd"] is None


async def test_a_wrong_value_is_quoted_only_so_far(gateway: RunningGateway) -> None:
    got = await gateway.chat(temperature="x" * 10_000)
    assert len(got.body) < 600


async def test_a_key_may_use_only_its_models() -> None:
    async with ScriptedServer([whole()]) as server:
        settings = config(server)
        settings["models"]["secret"] = settings["models"]["m"]
        settings["aliases"] = {"open-alias": "m", "secret-alias": "secret", "glob-*": "secret"}
        async with running_gateway(settings, models=["m"]) as gateway:
            status = {
                name: (await gateway.chat(model=name)).status
                for name in ("m", "open-alias", "secret", "secret-alias", "glob-x")
            }
            refused = await gateway.chat(model="secret-alias")
    assert status == {"m": 200, "open-alias": 200, "secret": 403, "secret-alias": 403, "glob-x": 403}
    assert (refused.error["code"], refused.error["param"]) == ("model_not_allowed", "model")


async def test_an_open_gateway_asks_for_no_key() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway({**config(server), "auth": {"mode": "open"}}) as it:
        got = await it.chat(key=None)
        row = await it.row()
    assert (got.status, row["key_id"]) == (200, "anonymous")


async def test_each_of_a_providers_keys_takes_its_turn() -> None:
    async with ScriptedServer([whole()]) as server:
        settings = config(server)
        del settings["providers"]["p1"]["api_key"]
        settings["providers"]["p1"]["api_keys"] = ["sk-one-0123456789", "sk-two-0123456789"]
        async with running_gateway(settings) as gateway:
            for _ in range(4):
                await gateway.chat()
    used = [sent.headers["authorization"] for sent in server.requests]
    assert used == ["Bearer sk-one-0123456789", "Bearer sk-two-0123456789"] * 2


# Loops


async def test_a_request_that_passed_here_before_is_a_508(gateway: RunningGateway) -> None:
    mark = gateway.services.instance_id.decode()
    for value in (mark, f"0123456789abcdef, {mark}", f"{mark}, 0123456789abcdef"):
        got = await gateway.chat(f"X-Gateway-Hop: {value}", "X-Request-Id: mine-1")
        assert (got.status, got.error["code"]) == (508, "loop_detected")
        assert got.headers["x-request-id"] == "mine-1"
    long = ", ".join(["0123456789abcdef"] * 40)
    assert (await gateway.chat(f"X-Gateway-Hop: {long}")).status == 508


class Forwarder:
    """A port that leads to another one, which may be chosen later."""

    port = 0
    to_port = 0
    connections = 0

    async def __aenter__(self) -> Forwarder:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self.to_port)
        await asyncio.gather(self._pipe(reader, back), self._pipe(there, writer))

    @staticmethod
    async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()


async def test_a_loop_over_two_gateways_ends() -> None:
    async with Forwarder() as forwarder:
        first_settings = config(forwarder.port, retries={"attempts": 1})
        first_settings["providers"]["p1"]["api_key"] = KEY
        first_settings["models"]["up1"] = first_settings["models"]["m"]
        async with running_gateway(first_settings) as first:
            second_settings = config(first.port, retries={"attempts": 1})
            second_settings["providers"]["p1"]["api_key"] = KEY
            second_settings["models"]["up1"] = second_settings["models"]["m"]
            async with running_gateway(second_settings) as second:
                forwarder.to_port = second.port
                got = await first.chat()
                row = await second.row()
    assert got.status == 502
    assert "has passed this gateway before" in got.error["message"]
    assert (row["status"], row["attempts"][0]["status"]) == (502, 508)
    assert forwarder.connections == 1


async def test_the_marks_of_the_gateways_before_are_passed_on() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(config(server)) as gateway:
        mark = gateway.services.instance_id.decode()
        await gateway.chat("X-Gateway-Hop: 0123456789abcdef")
        await gateway.chat("X-Gateway-Hop: evil; value")
        await gateway.chat()
    assert [sent.headers["x-gateway-hop"] for sent in server.requests] == [f"0123456789abcdef, {mark}", mark, mark]
