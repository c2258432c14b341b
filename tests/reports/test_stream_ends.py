"""Reports about how streams end: an error on the way, a connection that drops, no reason, no end of the body."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gateway.pipeline.event_relay
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, delta, event, stream, usage_chunk
from tests.fakes.scripted_server import Hang, Reset, Script, Sleep, chunk, chunked_head
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import HELLO, WEATHER, heard, in_front_of

FAILING: list[Any] = [
    pytest.param(event({"error": {"message": "CUDA out of memory", "type": "internal_error", "code": 500}}),
                 "CUDA out of memory", id="mozilla-ai/any-llm#847"),
    pytest.param(event({"error": {"message": "parameters did not match schema", "type": "invalid_request_error",
                                  "code": "tool_use_failed"}, "status_code": 400}),
                 "did not match schema", id="BerriAI/litellm#40566"),
    pytest.param(event({"error": {"message": "RESOURCE_EXHAUSTED", "type": "rate_limit", "code": 429}}),
                 "RESOURCE_EXHAUSTED", id="BerriAI/litellm#26015"),
    pytest.param(event({"error": {"message": "Compute error."}, "message": "Compute error."}), "Compute error",
                 id="zendev-sh/goai#110"),
    pytest.param(event({"object": "error", "message": "engine died", "type": "InternalServerError", "code": 500}),
                 "engine died", id="vllm-project/vllm#6174 in a stream"),
    pytest.param(b'error: {"code":500,"message":"slot unavailable","type":"server_error"}\n\n', "slot unavailable",
                 id="ggml-org/llama.cpp's error field"),
    pytest.param(b'{\n  "error": {\n    "code": 429,\n    "message": "Resource exhausted",\n'
                 b'    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n', "Resource exhausted", id="maximhq/bifrost#5262"),
    pytest.param(b'[{"error": {"code": 503, "message": "overloaded"}}]\n', "overloaded",
                 id="maximhq/bifrost#5262 (in a list)"),
    pytest.param(b'data: {"id": "c", "choices": [{"delta": \ndata: {"error": {"message": "stream_read_error"}}\n\n',
                 "stream_read_error", id="Wei-Shaw/sub2api#1471"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "told"), FAILING)
async def test_an_error_in_mid_stream_is_told_as_one(fault: bytes, told: str) -> None:
    async with in_front_of(stream(HELLO, fault)) as field:
        answer = await field.ask(stream=True, tools=[WEATHER])

        found = heard(answer)
        assert found.content == "hello"
        assert told in found.errors[0]["message"]
        assert isinstance(found.errors[0]["code"], str)
        assert found.finish == {}
        again = await field.ask(stream=True)  # the gateway is none the worse for it
        assert again.status == 200


async def test_a_connection_that_drops_in_mid_stream_is_told() -> None:
    """preloop/preloop#117"""
    async with in_front_of([chunked_head(), chunk(HELLO), Sleep(0.02), Reset()]) as field:
        found = heard(await field.ask(stream=True))

    assert found.content == "hello"
    assert found.errors
    assert found.finish == {}


async def test_done_is_an_end_without_a_reason_where_the_provider_tells_none() -> None:
    """diegosouzapw/OmniRoute#7800, ai-dynamo/dynamo#10514; ollama/ollama#4357"""
    async with in_front_of(stream(HELLO, DONE), "ollama") as field:
        found = heard(await field.ask(stream=True))
    assert (found.content, found.finish, found.done) == ("hello", {0: "stop"}, True)


ENDLESS: list[Any] = [
    pytest.param(stream(HELLO), "ollama", id="nothing"),
    pytest.param(stream(HELLO, usage_chunk()), "ollama", id="usage"),
    pytest.param(stream(HELLO, DONE), "vllm", id="done"),
    pytest.param(stream(HELLO, usage_chunk(), DONE), "openai_compatible", id="usage and done"),
]


@pytest.mark.parametrize(("script", "provider"), ENDLESS)
async def test_a_stream_without_a_reason_broke_off(script: Script, provider: str) -> None:
    """No reason is made up (earendil-works/pi#7441 is the other side of it)."""
    async with in_front_of(script, provider) as field:
        found = heard(await field.ask(stream=True))

    assert found.errors
    assert (found.finish, found.done) == ({}, False)


ENDED: list[Any] = [
    pytest.param([HELLO, STOP], id="reason alone"),
    pytest.param([delta(role="assistant", content="hello", finish="stop")], id="reason with the last word"),
    pytest.param([HELLO, STOP, usage_chunk()], id="usage"),
]


@pytest.mark.parametrize("events", ENDED)
async def test_an_answer_that_has_ended_does_not_wait_for_who_keeps_the_connection(
    events: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S11 of the failure drill, without the end of the body"""
    monkeypatch.setattr(gateway.pipeline.event_relay, "_END_SECONDS", 0.05)
    async with in_front_of([*stream(*events, end=False), Hang()]) as field:
        answer = await field.ask(stream=True, timeout=5)

    found = heard(answer)
    assert (found.content, found.finish, found.done, found.errors) == ("hello", {0: "stop"}, True, [])


async def test_done_alone_is_no_answer() -> None:
    async with in_front_of(stream(ROLE, DONE), "ollama") as field:
        answer = await field.ask(stream=True)

    assert answer.status == 502


async def test_a_whole_answer_without_a_reason_to_end_gets_one() -> None:
    """JamePeng/llama-cpp-python#113 and Ollama's null."""
    said = completion()
    said["choices"][0]["finish_reason"] = None
    async with in_front_of([wire_answer(json.dumps(said).encode())]) as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["finish_reason"] == "stop"
