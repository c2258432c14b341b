"""Reports about parameters: sent where they are refused, lost where they are taken, or left for somebody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import DONE, STOP, event, payloads, refusal, stream
from tests.fakes.scripted_server import ScriptedServer
from tests.reports.field import AS_PERSON, WEATHER, Json, Rule, heard, hello, in_front_of, lacks, saying, strict

GPT_OSS = "openai/gpt-oss-120b"
OLD_SERVER: Json = {"params": {"max_completion_tokens": {"support": "renamed", "to": "max_tokens"}}}
NO_STREAM_OPTIONS: Json = {"params": {"stream_options.include_usage": {"support": "rejected"}}}
LONG_STOPS = ["a", "b", "c", "d", "e"]


def both_limits(body: Json) -> str | None:
    both = "max_tokens" in body and "max_completion_tokens" in body
    return "max_tokens and max_completion_tokens are mutually exclusive" if both else None


def empty_tools(body: Json) -> str | None:
    return "`tools` must not be an empty array." if body.get("tools") == [] else None


def choice_alone(body: Json) -> str | None:
    alone = "tool_choice" in body and "tools" not in body
    return "When using `tool_choice`, `tools` must be set." if alone else None


def too_many_stops(body: Json) -> str | None:
    return "'stop' : too many items" if len(body.get("stop") or ()) > 4 else None


REFUSED: list[Any] = [
    # What would be refused there is renamed, put in order or left out, and the request is served.
    pytest.param("vllm", OLD_SERVER, [lacks("max_completion_tokens")], {"max_completion_tokens": 64},
                 {"max_tokens": 64}, id="voideditor/void#128"),
    pytest.param("fireworks", {}, [both_limits], {"max_tokens": 100, "max_completion_tokens": 64},
                 {"max_tokens": None, "max_completion_tokens": 64},
                 id="mozilla-ai/any-llm#865"),
    pytest.param("vllm", {}, [empty_tools, choice_alone],
                 {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
                 {"tools": None, "tool_choice": None, "parallel_tool_calls": None}, id="vllm-project/vllm#39741"),
    pytest.param("vllm", {}, [choice_alone], {"tool_choice": "auto"}, {"tool_choice": None},
                 id="NVIDIA-NeMo/Gym#1925 (auto)"),
    pytest.param("vllm", {}, [choice_alone], {"tool_choice": "none"}, {"tool_choice": None},
                 id="NVIDIA-NeMo/Gym#1925 (none)"),
    pytest.param("groq", {}, [lacks("store")], {"store": True}, {"store": None}, id="fanenr/chatbot#21"),
    pytest.param("groq", {}, [lacks("reasoning")], {"reasoning": {"effort": "low"}}, {"reasoning": None},
                 id="musistudio/llms#64"),
    pytest.param("fireworks", {}, [lacks("promptCacheKey")], {"promptCacheKey": "ses_1"}, {"promptCacheKey": None},
                 id="anomalyco/opencode#4386"),
    pytest.param("openai_compatible", NO_STREAM_OPTIONS, [lacks("stream_options")],
                 {"stream": True, "stream_options": {"include_usage": True}}, {"stream_options": None},
                 id="earendil-works/pi#596"),
    pytest.param("openai_compatible", {}, [too_many_stops], {"stop": LONG_STOPS}, {"stop": LONG_STOPS[:4]},
                 id="OpenAI API reference: up to four stops"),
    pytest.param("vllm", {}, [lacks("extra_body")], {"temperature": 0.0, "max_tokens": 16, "top_p": 1},
                 {"extra_body": None, "temperature": 0.0}, id="BerriAI/litellm#4769"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "facts", "rules", "asked", "sent"), REFUSED)
async def test_what_a_server_refuses_does_not_reach_it(
    provider: str, facts: Json, rules: list[Rule], asked: Json, sent: Json
) -> None:
    async with in_front_of(strict(*rules), provider, overrides=facts) as field:
        answer = await field.ask(**asked)

        assert answer.status == 200, answer.body
        (body,) = field.sent
        assert {name: body.get(name) for name in sent} == sent


KEPT: list[Any] = [
    pytest.param("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", {"logprobs": True, "top_logprobs": 1},
                 {"logprobs": 1}, id="BerriAI/litellm#6724"),
    pytest.param("llama_cpp_server", "qwen", {"logprobs": True, "top_logprobs": 1},
                 {"logprobs": True, "top_logprobs": 1}, id="BerriAI/litellm#17165"),
    pytest.param("fireworks", "accounts/fireworks/models/kimi-k2-instruct",
                 {"tools": [WEATHER], "parallel_tool_calls": False}, {"tools": [WEATHER], "parallel_tool_calls": False},
                 id="BerriAI/litellm#26569"),
    pytest.param("vllm", "qwen3",
                 {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}, "repetition_penalty": 1.1},
                 {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}, "repetition_penalty": 1.1,
                  "extra_body": None},
                 id="BerriAI/litellm#18039"),
    pytest.param("together", "m", {"stream": True}, {"stream_options": {"include_usage": True}},
                 id="BerriAI/litellm#30803"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "model", "asked", "sent"), KEPT)
async def test_what_a_server_takes_reaches_it(provider: str, model: str, asked: Json, sent: Json) -> None:
    async with in_front_of(hello, provider, model) as field:
        answer = await field.ask(**asked)

        assert answer.status == 200, answer.body
        (body,) = field.sent
        assert {name: body.get(name) for name in sent} == sent


async def test_logprobs_of_another_shape_come_back_in_openais() -> None:
    """BerriAI/litellm#6724: Together's are parallel arrays, and one number a chunk in streams."""
    arrays = {"tokens": ["hel", "lo"], "token_logprobs": [-0.5, -0.25], "top_logprobs": [{"hel": -0.5}, {"lo": -0.25}]}
    choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "logprobs": arrays}
    script = [saying({}, choices=[{**choice, "finish_reason": "eos"}])]
    async with in_front_of(lambda _: script, "together") as field:
        answer = await field.ask(logprobs=True, top_logprobs=1)

    content = answer.json["choices"][0]["logprobs"]["content"]
    assert [(one["token"], one["logprob"]) for one in content] == [("hel", -0.5), ("lo", -0.25)]
    assert content[0]["top_logprobs"] == [{"token": "hel", "logprob": -0.5, "bytes": [104, 101, 108]}]


async def test_a_streams_single_numbers_come_back_as_logprobs_of_its_words() -> None:
    """togethercomputer/together-python#153: a float a chunk, which official clients cannot read."""

    def chunk(text: str, logprob: float) -> bytes:
        choice = {"index": 0, "delta": {"content": text}, "logprobs": logprob, "finish_reason": None}
        members = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return event({**members, "choices": [choice]})

    script = stream(chunk("hel", -0.5), chunk("lo", -0.25), STOP, DONE)
    async with in_front_of(script, "together") as field:
        answer = await field.ask(logprobs=True, top_logprobs=1, stream=True)

    told = [
        choice["logprobs"] for one in payloads(answer.body)[:-1] for choice in one["choices"] if choice.get("logprobs")
    ]
    tokens = [(token["token"], token["logprob"]) for part in told for token in part["content"]]
    assert tokens == [("hel", -0.5), ("lo", -0.25)]


@pytest.mark.parametrize("streamed", [True, False])
async def test_tools_and_a_schema_are_not_sent_together_where_that_is_refused(streamed: bool) -> None:
    """tetsuo-ai/agenc-core#2133: gpt-oss at Cerebras."""

    def both(body: Json) -> str | None:
        return '"tools" is incompatible with "response_format"' if {"tools", "response_format"} <= body.keys() else None

    answer_of = saying({"content": '{"name":"Ada"}'})

    def script(request: Any) -> Any:
        told = both(json.loads(request.body))
        return [refusal(400, told)] if told else [answer_of]

    async with in_front_of(script, "cerebras", "gpt-oss-120b") as field:
        answer = await field.ask(tools=[WEATHER], response_format=AS_PERSON, stream=streamed)

    text = heard(answer).content if streamed else answer.json["choices"][0]["message"]["content"]
    assert json.loads(text) == {"name": "Ada"}


async def test_a_stream_refused_together_with_a_schema_is_asked_for_whole() -> None:
    """pipecat-ai/pipecat#2576: reasoning models at Cerebras."""

    def script(request: Any) -> Any:
        body = json.loads(request.body)
        if body.get("stream") and "response_format" in body:
            told = '"stream=true" with structured outputs is currently not supported for reasoning models.'
            return [refusal(400, told, code="wrong_api_format")]
        return [saying({"content": '{"name":"Ada"}'})]

    async with in_front_of(script, "cerebras", "qwen-3-32b") as field:
        answer = await field.ask(response_format=AS_PERSON, stream=True)

    found = heard(answer)
    assert (json.loads(found.content), found.finish, found.done) == ({"name": "Ada"}, {0: "stop"}, True)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"n": 0, "stream": True}, id="EricLBuehler/mistral.rs#1874"),
        pytest.param({"messages": []}, id="anthony-chaudhary/fak#326 (empty)"),
        pytest.param({"messages": None}, id="anthony-chaudhary/fak#326 (missing)"),
        pytest.param({"response_format": {"type": "json_schema"}}, id="OpenAI API reference: a schema is required"),
        pytest.param({"response_format": {"type": "json_schema", "json_schema": None}}, id="a schema that is null"),
    ],
)
async def test_nonsense_is_refused_before_anything_is_sent(asked: Json) -> None:
    async with in_front_of() as field:
        answer = await field.ask(**asked)

        assert answer.status == 400
        assert answer.error["message"]
        assert answer.error["type"] == "invalid_request_error"
        assert field.sent == []


async def test_a_fallback_gets_the_clients_own_parameters_patched_anew() -> None:
    """Skyvern-AI/skyvern#4152: what the first provider takes, the second refuses."""
    busy = [refusal(429, "busy", type="rate_limit_error")]
    second = strict(lacks("logprobs", "logit_bias", "top_k"))
    async with ScriptedServer(busy) as first, ScriptedServer(second) as backup:
        settings = config(first, backup, unsupported="drop", retries={"attempts": 2})
        settings["providers"]["p1"]["type"], settings["providers"]["p2"]["type"] = "vllm", "groq"
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(logprobs=True, logit_bias={"1": 1}, top_k=5)

        assert answer.status == 200, answer.body
        sent = json.loads(backup.requests[-1].body)
        assert sent["model"] == "up2"
        assert not {"logprobs", "logit_bias", "top_k"} & sent.keys()


async def test_a_text_completion_streams_where_the_provider_streams_it() -> None:
    """api7/aisix#1093: it was read as one document, and failed after the provider had done the work."""

    def piece(text: str, finish: str | None = None) -> bytes:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return event({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]})

    async with in_front_of(stream(piece("O"), piece("K"), piece("", "stop"), DONE)) as field:
        answer = await field.gateway.post("/v1/completions", {"model": "m", "prompt": "Say OK", "stream": True})

    assert answer.status == 200
    told = [json.loads(line[6:]) for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    assert "".join(chunk["choices"][0]["text"] for chunk in told) == "OK"


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_text_completion_at_a_provider_of_chats_is_one_nevertheless(streamed: bool) -> None:
    """BoundaryML/baml#430 and others of its kind: what a provider lacks is given by what it has."""
    async with in_front_of(hello, "groq", GPT_OSS) as field:
        answer = await field.gateway.post("/v1/completions", {"model": "m", "prompt": "Say hello.", "stream": streamed})

        assert field.server.requests[0].path.endswith("/chat/completions")
        assert answer.status == 200, answer.body
    assert b'"object":"text_completion"' in answer.body
    assert b'"text":"hello"' in answer.body
