"""Reports about failures whose reason is there, but in an odd place, or under a status that means something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import DONE, completion, event, refusal, stream
from tests.fakes.scripted_server import RecordedRequest, Script, ScriptedServer
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import AS_PERSON, USER, WEATHER, Json, Rule, hello, in_front_of, saying


def told(body: Any, status: int = 200, content_type: str = "application/json") -> Script:
    """What an upstream answers, in whatever shape."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return [wire_answer(raw, status, content_type)]


OVERFLOW = {"error": {"message": "This model's maximum context length is 8192 tokens.", "code": 400}}
TOO_LONG = "The input (172830 tokens) is longer than the model's context length (131072 tokens)."
RAW = '{"error":{"message":"thinking is on, but the budget is not set","type":"invalid_request_error"}}'

REASONS: list[Any] = [
    # What an upstream answers, and what a client hears: status, code and some of the message.
    pytest.param(stream(event({"error": {"object": "error", "message": TOO_LONG, "type": "BadRequestError",
                                         "code": 400}}), DONE),
                 400, "context_length_exceeded", "172830", id="BerriAI/litellm#10793, sgl-project/sglang#12081"),
    pytest.param(stream(event({"error": {"code": "server_error", "type": "server_error",
                                         "message": "start-slot: the context window is full."}}), DONE),
                 400, "context_length_exceeded", "window is full", id="ardanlabs/kronk#862"),
    pytest.param(told({"error": {"message": json.dumps(OVERFLOW), "type": "upstream_error"}}, 400),
                 400, "context_length_exceeded", "8192", id="a whole body within the message"),
    pytest.param(told({"error": {"message": '{"error":{"message":"no","code":"context_length_exceeded"}}'}}, 400),
                 400, "context_length_exceeded", "no", id="a code within the message"),
    pytest.param(told({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": RAW}}}, 400),
                 400, None, "budget is not set", id="iOfficeAI/AionUi#2746"),
    pytest.param(told({"error": {"message": "Provider returned error", "code": 429,
                                 "metadata": {"raw": "qwen is temporarily rate-limited upstream"}}}, 429),
                 429, "rate_limit_exceeded", "temporarily rate-limited", id="plain text behind a router"),
    pytest.param(told({"error": True, "message": "went wrong"}, 400), 400, None, "went wrong", id="a flag"),
    pytest.param(told({"code": 500, "msg": "system busy", "data": None}), 502, None, "system busy", id="msg under 200"),
    pytest.param(told({"success": False, "message": "slow down", "code": "429"}), 429, "rate_limit_exceeded",
                 "slow down", id="no envelope under 200"),
    pytest.param(told({"base_resp": {"status_code": 1013, "status_msg": "unknown engine"}, "choices": None}),
                 502, None, "unknown engine", id="MiniMax"),
    pytest.param(told({**completion(), "choices": [
        {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error",
         "error": {"message": "provider died", "code": 502}}]}), 502, None, "provider died", id="within a choice"),
    pytest.param(told("500 Internal Server Error\nthe engine is gone", 500, "text/plain"), 502, None,
                 "the engine is gone", id="two lines of text"),
    pytest.param([refusal(500, "image input is not supported - hint: you may need to provide the mmproj", code=500)],
                 400, "unsupported_parameter", "image input", id="llama.cpp without a projector"),
    pytest.param([refusal(500, 'Missing tool call type: {"id":"x"}', code=500, type="server_error")],
                 400, "unsupported_parameter", "tool call type", id="lemonade-sdk/lemonade#1481"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("script", "status", "code", "message"), REASONS)
async def test_the_reason_is_found_wherever_it_stands(
    script: Script, status: int, code: str | None, message: str, streamed: bool
) -> None:
    async with in_front_of(script) as field:
        answer = await field.ask(stream=streamed)

    assert (answer.status, message in answer.error["message"]) == (status, True), answer.body
    assert code is None or answer.error["code"] == code


WAITS: list[Any] = [
    pytest.param([{"error": {"code": 429, "message": "Quota.", "status": "RESOURCE_EXHAUSTED",
                             "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]}}],
                 id="Gemini"),
    pytest.param({"error": {"message": "Slow down.", "retry_after": 17}}, id="beside the message"),
    pytest.param({"error": {"message": "Slow down."}, "retry_after_seconds": 16.2}, id="beside the error"),
    pytest.param({"error": {"message": "Slow down.", "metadata": {"retry_after_seconds": 17}}}, id="a router's"),
    pytest.param({"error": {"message": "Please try again in 16.5s."}}, id="Aider-AI/aider#3265"),
]  # fmt: skip


@pytest.mark.parametrize("body", WAITS)
async def test_the_time_to_wait_is_read_from_the_body_as_well(body: Any) -> None:
    async with in_front_of(told(body, 429)) as field:
        answer = await field.ask()

    assert (answer.status, answer.headers["retry-after"]) == (429, "17")


def _parts(body: Json) -> str | None:
    parts = any(isinstance(message["content"], list) for message in body["messages"])
    return "[json.exception.type_error.302] type must be string, but is array" if parts else None


def _schema(body: Json) -> str | None:
    kind = body.get("response_format", {}).get("type")
    return (
        f'response_format type must be one of "text" or "json_object", but got: {kind}'
        if kind == "json_schema"
        else None
    )


def _tools(body: Json) -> str | None:
    return "tools param requires --jinja flag" if "tools" in body else None


PERSON = '{"name":"Ada"}'
CALL = '{"tool_calls":[{"name":"get_weather","arguments":{"city":"Oslo"}}]}'
OLD: list[Any] = [
    pytest.param(_parts, {"messages": [{**USER, "content": [{"type": "text", "text": "Hi"}]}]}, "hello", "hello",
                 id="tmc/langchaingo#667"),
    pytest.param(_schema, {"response_format": AS_PERSON}, PERSON, PERSON, id="ikawrakow/ik_llama.cpp#778"),
    pytest.param(_tools, {"tools": [WEATHER]}, CALL, None, id="llama.cpp without its templates"),
]  # fmt: skip


@pytest.mark.parametrize("provider", ["openai_compatible", "llama_cpp_server"])
@pytest.mark.parametrize(("rule", "asked", "text", "content"), OLD)
async def test_what_an_engine_refuses_as_its_own_failure_is_asked_otherwise(
    rule: Rule, asked: Json, text: str, content: str | None, provider: str
) -> None:
    def script(request: RecordedRequest) -> Script:
        wrong = rule(json.loads(request.body))
        return [refusal(500, wrong, code=500, type="server_error")] if wrong else [saying({"content": text})]

    async with in_front_of(script, provider) as field:
        for _ in range(2):
            answer = await field.ask(**asked)
            assert answer.status == 200, answer.body
        assert len(field.sent) == 3

    message = answer.json["choices"][0]["message"]
    assert message["content"] == content
    assert bool(message.get("tool_calls")) == ("tools" in asked)


async def test_a_failure_of_the_engine_teaches_nothing() -> None:
    async with in_front_of([refusal(500, "temperature sensor: unexpected value", type="server_error")]) as field:
        answer = await field.ask(temperature=0.5)

        assert (answer.status, len(field.sent)) == (502, 1)
    async with in_front_of(hello) as field:
        assert (await field.ask(temperature=0.5)).status == 200


GONE: list[Any] = [
    pytest.param("The model `llama3-70b-8192` has been decommissioned and is no longer supported.",
                 "model_decommissioned", id="Groq's retired models"),
    pytest.param("The model `qwen-72b` has been deprecated", None, id="deprecated"),
    pytest.param("Model 'qwen-72b' is not available", None, id="not available"),
    pytest.param("This model does not support image input", None, id="blind"),
    pytest.param("At most 0 image(s) may be provided in one request.", None, id="vLLM with a text model"),
    pytest.param("/models/qwen is not a multimodal model", None, id="vLLM's older words"),
    pytest.param("Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, "
                 "expected `text`", None, id="DeepSeek"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "code"), GONE)
async def test_what_one_target_has_no_more_or_cannot_see_another_is_asked_for(told: str, code: str | None) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}
    async with (
        ScriptedServer([refusal(400, told, code=code)]) as first,
        ScriptedServer([saying({"content": "from backup"})]) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        answer = await gateway.chat(messages=[asked])

    assert answer.status == 200, answer.body
    assert answer.json["choices"][0]["message"]["content"] == "from backup"
