"""Reports about messages: members, roles and forms of content that one server takes and another refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.reports.field import CLOCK, USER, WEATHER, Json, Rule, call, in_front_of, saying, strict

NINE = re.compile(r"^[A-Za-z0-9]{9}$")
QWEN = "Qwen/Qwen3.6-27B"


def no_member(name: str) -> Rule:
    """A server that knows no such member of a message, or of its parts."""
    return lambda body: f"property '{name}' is unsupported" if f'"{name}"' in json.dumps(body["messages"]) else None


def no_nulls(body: Json) -> str | None:
    nulls = [name for message in body["messages"] for name, value in message.items() if value is None]
    return f"'messages.0' : '{nulls[0]}' must not be null" if [n for n in nulls if n != "content"] else None


def strings_alone(body: Json) -> str | None:
    texts = all(isinstance(message.get("content"), str) for message in body["messages"])
    return None if texts else "value must be a string"


def one_leading_system(body: Json) -> str | None:
    late = any(message["role"] == "system" for message in body["messages"][1:])
    return "System message must be at the beginning." if late else None


def no_role(role: str) -> Rule:
    return lambda body: "Unexpected message role." if any(m["role"] == role for m in body["messages"]) else None


def nine_characters(body: Json) -> str | None:
    ids = re.findall(r'"(?:tool_call_id|id)": "([^"]*)"', json.dumps(body["messages"]))
    bad = [one for one in ids if not NINE.match(one)]
    return f"Tool call id was {bad[0]} but must be a-z, A-Z, 0-9, with a length of 9." if bad else None


def arguments_are_json(body: Json) -> str | None:
    for message in body["messages"]:
        for one in message.get("tool_calls") or ():
            try:
                json.loads(one["function"]["arguments"])
            except (TypeError, ValueError):
                return "Expecting value: line 1 column 1 (char 0)"
    return None


def content_is_text(body: Json) -> str | None:
    missing = any(not isinstance(message.get("content"), (str, list)) for message in body["messages"])
    return "Invalid 'content': 'content' field must be a string or an array of objects." if missing else None


def result(call_id: str, content: Any = "4 degrees") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


LONG_ID, OTHER_ID = "call_PTLP8xhu3uwZk4l3nlnrrJha", "call_QQLP8xhu3uwZk4l3nlnrrJhb"
TWO_CALLS = [
    USER,
    {"role": "assistant", "content": "", "tool_calls": [call(LONG_ID), call(OTHER_ID)]},
    result(LONG_ID),
    result(OTHER_ID),
]
ONE_CALL = [USER, {"role": "assistant", "content": None, "tool_calls": [call("call_1")]}, result("call_1")]
SYSTEM, DEVELOPER = {"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Be brief."}
SAID: Json = {"role": "assistant", "content": "Hello."}
STRICT_NAMES: Json = {"messages": {"name": {"support": "rejected", "patch": "strip"}}}

SERVED: list[Any] = [
    pytest.param("groq", {}, "llama", [no_nulls],
                 [{**SYSTEM, "name": None, "tool_calls": None}, {**USER, "tool_calls": None, "function_call": None}],
                 id="julep-ai/julep#885"),
    pytest.param("openai_compatible", STRICT_NAMES, "mistral", [no_member("name")],
                 [{**SYSTEM, "name": "sys"}, {**USER, "name": "User_proxy"}], id="microsoft/autogen#2748"),
    pytest.param("groq", {"messages": {"content_as_string": True}}, "llama", [strings_alone],
                 [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
                  {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}],
                 id="OpenHands/OpenHands#4643"),
    pytest.param("vllm", {}, "mistralai/Mistral-7B-Instruct-v0.3", [nine_characters], TWO_CALLS,
                 id="vllm-project/vllm#12332"),
    pytest.param("vllm", {}, "mistralai/Devstral-Small-2507", [nine_characters], TWO_CALLS,
                 id="vllm-project/vllm#12332 (another model of that family)"),
    pytest.param("groq", {}, "qwen/qwen3-32b", [no_member("reasoning_content")],
                 [USER, {**SAID, "reasoning_content": "They greet."}, USER], id="AstrBotDevs/AstrBot#5946"),
    pytest.param("groq", {}, "openai/gpt-oss-120b", [no_member("reasoning_content")],
                 [USER, {"role": "assistant", "content": None, "reasoning_content": "Look.",
                         "tool_calls": [call("call_1")]}, result("call_1")],
                 id="tashfeenahmed/freellmapi#1070"),
    pytest.param("groq", {}, "llama", [no_member("timestamp")], [{**USER, "timestamp": 1769385600}],
                 id="ServiceStack/llms#17"),
    pytest.param("fireworks", {}, "accounts/fireworks/models/qwen3-coder", [no_member("cache_control")],
                 [{"role": "user",
                   "content": [{"type": "text", "text": "gcd", "cache_control": {"type": "ephemeral"}}]}],
                 id="musistudio/claude-code-router#377"),
    pytest.param("vllm", {}, QWEN, [one_leading_system], [SYSTEM, {**SYSTEM, "content": "More."}, USER],
                 id="can1357/oh-my-pi#958"),
    pytest.param("vllm", {}, QWEN, [one_leading_system], [USER, SAID, {**SYSTEM, "content": "Sum up."}, USER],
                 id="vllm-project/vllm#41114"),
    pytest.param("llama_cpp_server", {}, "Qwen3.8-27B", [one_leading_system], [SYSTEM, SYSTEM, USER],
                 id="Noineri/vibe_tavern#44"),
    pytest.param("vllm", {}, QWEN, [no_role("developer")], [DEVELOPER, USER], id="ogx-ai/ogx#6069"),
    pytest.param("ollama", {}, "qwen3", [no_role("developer")], [DEVELOPER, USER], id="cloudflare/cloudflare-os#36"),
    pytest.param("fireworks", {}, "accounts/fireworks/models/qwen3p8", [no_role("developer"), one_leading_system],
                 [USER, {**DEVELOPER, "content": "One word."}, USER], id="BerriAI/litellm#39852"),
    pytest.param("vllm", {}, "qwen3", [arguments_are_json],
                 [USER, {"role": "assistant", "content": "", "tool_calls": [call("call_1", "get_time", "")]},
                  result("call_1", "noon")],
                 id="aws-samples/bedrock-access-gateway#258"),
    pytest.param("openai_compatible", {}, "gemma", [arguments_are_json],
                 [USER, {"role": "assistant", "content": None,
                         "tool_calls": [call("call_1", arguments={"city": "Oslo"})]}, result("call_1")],
                 id="isair/jarvis#560"),
    pytest.param("openai_compatible", {}, "glm", [content_is_text],
                 [USER, {"role": "assistant", "content": "", "tool_calls": [call("call_1")]},
                  result("call_1", {"source": "capability.md"})],
                 id="NousResearch/hermes-agent#48244"),
    pytest.param("openai_compatible", {}, "deepseek", [content_is_text],
                 [USER, {"role": "assistant", "content": "", "tool_calls": [call("call_1")]}, result("call_1", None)],
                 id="NousResearch/hermes-agent#31770"),
    pytest.param("groq", {}, "llama", [content_is_text],
                 [USER, {"role": "assistant", "content": "", "tool_calls": [call("call_1")]},
                  result("call_1", [{"type": "text", "text": "4 degrees"}])],
                 id="langbot-app/LangBot#2476"),
    pytest.param("lm_studio", {}, "qwen2.5-7b-instruct", [content_is_text], ONE_CALL,
                 id="lmstudio-ai/lmstudio-bug-tracker#261"),
    pytest.param("llama_cpp_python", {}, "qwen", [content_is_text],
                 [USER, {"role": "assistant", "tool_calls": [call("call_1")]}, result("call_1")],
                 id="abetlen/llama-cpp-python#1805"),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "facts", "model", "rules", "messages"), SERVED)
async def test_messages_that_a_server_refuses_are_put_in_the_form_it_takes(
    provider: str, facts: Json, model: str, rules: list[Rule], messages: list[Json]
) -> None:
    tools = [WEATHER, CLOCK] if "tool_calls" in json.dumps(messages) and provider != "llama_cpp_python" else None
    async with in_front_of(strict(*rules), provider, model, facts) as field:
        answer = await field.ask(messages=messages, tools=tools)

        assert answer.status == 200, answer.body
        assert answer.json["choices"][0]["message"]["content"] == "hello"
        (body,) = field.sent
        assert "Be brief." in json.dumps(body) or "Be brief." not in json.dumps(messages)


async def test_calls_and_their_results_still_belong_together_under_their_new_ids() -> None:
    """vllm-project/vllm#12332"""
    facts = {"messages": {"tool_call_ids": "nine_alphanumeric"}}
    async with in_front_of(overrides=facts) as field:
        await field.ask(messages=TWO_CALLS, tools=[WEATHER])

        _, assistant, *results = field.sent[0]["messages"]
        ids = [one["id"] for one in assistant["tool_calls"]]
        assert [one["tool_call_id"] for one in results] == ids
        assert len(set(ids)) == 2


ANSWERED: list[Any] = [
    pytest.param({"content": None, "tool_calls": [call("c", "get_time", None)]}, "tool_calls", ("get_time", {}),
                 id="langchain-ai/langchain#34242"),
    pytest.param({"content": None, "tool_calls": [call("c", arguments={"city": "Oslo"})]}, "tool_calls",
                 ("get_weather", {"city": "Oslo"}), id="ggml-org/llama.cpp#20198"),
    pytest.param({"content": None, "tool_calls": [call("c")]}, "tool_use", ("get_weather", {"city": "Oslo"}),
                 id="theopenco/llmgateway#3492"),
    pytest.param({"content": "", "tool_calls": [call("c")]}, "stop", ("get_weather", {"city": "Oslo"}),
                 id="Blaizzy/mlx-vlm#990"),
    pytest.param({"content": None, "tool_calls": [call("")]}, "tool_calls", ("get_weather", {"city": "Oslo"}),
                 id="huggingface/text-generation-inference#2136"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "finish", "expected"), ANSWERED)
async def test_a_call_in_a_whole_answer_reads_as_openais_do(
    message: Json, finish: str, expected: tuple[str, Json]
) -> None:
    async with in_front_of([saying(message, finish)], "vllm") as field:
        answer = await field.ask(tools=[WEATHER, CLOCK])

    (choice,) = answer.json["choices"]
    (made,) = choice["message"]["tool_calls"]
    assert (made["function"]["name"], json.loads(made["function"]["arguments"])) == expected
    assert made["id"]
    assert made["type"] == "function"
    assert choice["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("finish", ["eos", "end_turn", "stop_sequence", "eos_token"])
async def test_foreign_reasons_to_end_are_openais_stop(finish: str) -> None:
    """theopenco/llmgateway#3492, openai/openai-dotnet#267"""
    async with in_front_of([saying({"content": "hello"}, finish)], "together") as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["finish_reason"] == "stop"


async def test_what_only_one_provider_says_stays_there() -> None:
    """BerriAI/litellm#361"""
    script = [saying({"content": "hello"}, x_groq={"id": "req_1"}, service_tier="on_demand")]
    async with in_front_of(script, "groq", "llama-3.1-8b-instant") as field:
        answer = await field.ask()

    assert answer.json["choices"][0]["message"]["content"] == "hello"
    assert "x_groq" not in answer.json
