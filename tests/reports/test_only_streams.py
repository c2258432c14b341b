"""Reports about servers that give long answers, or those of some models, as streams alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, good_stream, refusal, stream, usage_chunk, words
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import WEATHER, in_front_of

WORDS: list[Any] = [
    pytest.param("fireworks", "Requests with max_tokens > 4096 must have stream=true", id="nullclaw/nullclaw#231"),
    pytest.param("openai_compatible", "Requests with max_tokens greater than 4096 must have stream=true",
                 id="nextlevelbuilder/goclaw#660, behind a router"),
    pytest.param("openai_compatible", "This model only support stream mode, please enable the stream parameter to "
                 "access the model.", id="DashScope's QwQ"),
    pytest.param("openai_compatible", "parameter.enable_thinking must be set to false for non-streaming calls",
                 id="DashScope's Qwen3"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "told"), WORDS)
async def test_a_whole_answer_is_put_together_where_there_are_only_streams(provider: str, told: str) -> None:
    def script(request: RecordedRequest) -> Script:
        streamed = json.loads(request.body).get("stream") is True
        return good_stream("Hello", " there") if streamed else [refusal(400, told, code="BAD_REQUEST")]

    async with in_front_of(script, provider) as field:
        for _ in range(2):
            answer = await field.ask(max_tokens=8192, stream=False)
            assert answer.status == 200, answer.body
            assert answer.json["object"] == "chat.completion"
            assert answer.json["choices"][0]["message"]["content"] == "Hello there"
            assert answer.json["usage"]["total_tokens"] == 12
            assert "stream=emulated" in answer.headers["x-gateway-adjusted"]

        assert [body["stream"] for body in field.sent] == [False, True, True]
        assert {body["max_tokens"] for body in field.sent} == {8192}


async def test_calls_thoughts_and_stops_of_such_an_answer_are_there_as_well() -> None:
    part = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    called = stream(
        ROLE, delta(reasoning="Look."), *words("So"), delta(tool_calls=[part]), delta(finish="tool_calls"), DONE
    )

    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        if not body.get("stream"):
            return [refusal(400, "stream must be true")]
        return called if "tools" in body else stream(ROLE, *words("one END two"), STOP, usage_chunk(), DONE)

    async with in_front_of(script) as field:
        message = (await field.ask(tools=[WEATHER])).json["choices"][0]["message"]
        stopped = await field.ask(stop=["a", "b", "c", "d", "END"])

    assert (message["content"], message["reasoning_content"]) == ("So", "Look.")
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": "{}"}
    assert stopped.json["choices"][0]["message"]["content"] == "one "


async def test_a_client_that_streams_is_told_what_is_wrong() -> None:
    async with in_front_of([refusal(400, "This model only support stream mode")]) as field:
        answer = await field.ask(stream=True)

        assert (answer.status, len(field.sent)) == (400, 1)
