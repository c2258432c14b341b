"""Reports about what no file can know: a server that refuses something says so, and is asked otherwise at once.

The words are those of the reports. Each server refuses only the first request; later ones are put as it takes them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.reports.field import USER, WEATHER, Json, Rule, in_front_of, strict
from tests.reports.refusing import (
    CALLED,
    DEVELOPER,
    PART,
    PING,
    SAID,
    STRICT,
    SYSTEM,
    at_most,
    late_system,
    no_message,
    no_tool,
    same_again,
    twice,
    unanswered,
    user_after_tool,
    without,
)

LEARNED: list[Any] = [
    # What is asked, what refuses it, and what is sent in its place.
    pytest.param(without("max_completion_tokens", "[{'type': 'extra_forbidden', 'loc': ('body', "
                         "'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]"),
                 {"max_completion_tokens": 64}, {"max_tokens": 64, "max_completion_tokens": None},
                 "max_completion_tokens=renamed", id="voideditor/void#128"),
    pytest.param(without("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. "
                         "Use 'max_completion_tokens' instead."),
                 {"max_tokens": 64}, {"max_completion_tokens": 64, "max_tokens": None}, "max_tokens=renamed",
                 id="OpenAI's models that reason"),
    pytest.param(at_most(32768, "`max_tokens` must be less than or equal to `32768`, the maximum value for "
                         "`max_tokens` is less than the `context_window` for this model"),
                 {"max_tokens": 131072}, {"max_tokens": 32768}, "max_tokens=clamped",
                 id="cooneycw/claude-power-pack#329"),
    pytest.param(at_most(8192, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
                 {"max_tokens": 32000}, {"max_tokens": 8192}, "max_tokens=clamped", id="DeepSeek"),
    pytest.param(at_most(65536, "max_tokens (384000) exceeds model's maximum output tokens (65536) for model "
                         "deepseek-v4-flash:0731"),
                 {"max_tokens": 384000}, {"max_tokens": 65536}, "max_tokens=clamped",
                 id="DaviRain-Su/hyper-grok-build#44"),
    pytest.param(without("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model. "
                         "Only the default (1) value is supported."),
                 {"temperature": 0.2}, {"temperature": None}, "temperature=dropped", id="johny-b/llmcomp#69"),
    pytest.param(without("presence_penalty", "Model does not support parameter presencePenalty"),
                 {"presence_penalty": 0.5}, {"presence_penalty": None}, "presence_penalty=dropped",
                 id="diegosouzapw/OmniRoute#5273"),
    pytest.param(lambda body: "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
                 if {"temperature", "top_p"} <= body.keys() else None,
                 {"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": None}, "top_p=dropped",
                 id="skydiscover-ai/skydiscover#4"),
    pytest.param(lambda body: "`reasoning_effort` must be one of `none` or `default`"
                 if body.get("reasoning_effort") == "medium" else None,
                 {"reasoning_effort": "medium"}, {"reasoning_effort": None}, "reasoning_effort=dropped",
                 id="iamsrikanthnani/pluely#219"),
    pytest.param(without("thinking", "Failed to deserialize the JSON body into the target type: thinking: unknown "
                         "field `thinking`, expected one of `messages`, `model`"),
                 {"thinking": {"type": "enabled"}}, {"thinking": None}, "thinking=dropped",
                 id="BerriAI/litellm#14225"),
    pytest.param(without("prompt_cache_key", "property 'prompt_cache_key' is unsupported"),
                 {"prompt_cache_key": "k"}, {"prompt_cache_key": None}, "prompt_cache_key=dropped",
                 id="sipeed/picoclaw#1196"),
    pytest.param(no_message(lambda message: message["role"] == "developer",
                            "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - "
                            "'messages.[0].role'"),
                 {"messages": [DEVELOPER, USER]}, {"messages": [SYSTEM, USER]}, "messages=rewritten",
                 id="can1357/oh-my-pi#843"),
    pytest.param(no_message(lambda message: None in message.values(),
                            "messages[0].tool_calls: invalid type: null, expected a sequence"),
                 {"messages": [{**USER, "tool_calls": None, "name": None}]}, {"messages": [USER]},
                 "messages=rewritten", id="julep-ai/julep#885"),
    pytest.param(no_message(lambda message: message.get("tool_calls") == [],
                            "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, "
                            "but got an empty array instead."),
                 {"messages": [USER, {**SAID, "tool_calls": []}, USER]}, {"messages": [USER, SAID, USER]},
                 "messages=rewritten", id="OpenAI's own words"),
    pytest.param(no_message(lambda message: "name" in message, "extra_forbidden: messages.0.user.name"),
                 {"messages": [{**USER, "name": "User_proxy"}]}, {"messages": [USER]}, "messages=rewritten",
                 id="microsoft/autogen#2748"),
    pytest.param(no_message(lambda message: "provider_specific_fields" in message,
                            "'messages.0' : property 'provider_specific_fields' is unsupported"),
                 {"messages": [{**USER, "provider_specific_fields": {"a": 1}}]}, {"messages": [USER]},
                 "messages=rewritten", id="BerriAI/litellm#25595"),
    pytest.param(no_message(lambda message: isinstance(message["content"], list),
                            "'messages.0.content' : value must be a string"),
                 {"messages": [{"role": "user", "content": [{"type": "text", "text": USER["content"]}]}]},
                 {"messages": [USER]}, "messages=rewritten", id="OpenHands/OpenHands#4643"),
    pytest.param(no_message(lambda message: message.get("content") is None,
                            "Failed to deserialize the JSON body into the target type: messages[1]: missing "
                            "field 'content'"),
                 {"messages": CALLED}, {"messages": [USER, {**CALLED[1], "content": ""}, CALLED[2]]},
                 "messages=rewritten", id="BerriAI/litellm#37711"),
    pytest.param(no_message(lambda message: "input_text" in json.dumps(message),
                            "1 validation error: messages.0.content.0.type: Input should be 'text'"),
                 {"messages": [{"role": "user", "content": [{"type": "input_text", "text": "Hi."}]}]},
                 {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]}, "messages=rewritten",
                 id="musistudio/claude-code-router#1427"),
    pytest.param(user_after_tool, {"messages": [*CALLED, USER]},
                 {"messages": [*CALLED, {"role": "assistant", "content": "OK."}, USER]}, "messages=rewritten",
                 id="NousResearch/hermes-agent#20154"),
    pytest.param(same_again, {"messages": [SYSTEM, USER, USER, SAID, SAID, USER]},
                 {"messages": [SYSTEM, twice(USER), twice(SAID), USER]}, "messages=rewritten",
                 id="charmbracelet/crush#279"),
    pytest.param(late_system, {"messages": [USER, SYSTEM]}, {"messages": [SYSTEM, USER]}, "messages=rewritten",
                 id="vllm-project/vllm#44505"),
    pytest.param(no_message(lambda message: {"type": "text", "text": ""} in message["content"],
                            "messages: text content blocks must be non-empty"),
                 {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}, PART]}]},
                 {"messages": [{"role": "user", "content": [PART]}]}, "messages=rewritten", id="Anthropic, a part"),
    pytest.param(no_message(lambda message: {"type": "text", "text": " "} in message["content"],
                            "messages: text content blocks must contain non-whitespace text"),
                 {"messages": [{"role": "user", "content": [{"type": "text", "text": " "}, PART]}]},
                 {"messages": [{"role": "user", "content": [PART]}]}, "messages=rewritten", id="Anthropic, a blank"),
    pytest.param(no_message(lambda message: not message["content"],
                            "messages.1: all messages must have non-empty content except for the optional final "
                            "assistant message"),
                 {"messages": [USER, {**SAID, "content": ""}, USER]}, {"messages": [USER, USER]}, "messages=rewritten",
                 id="Anthropic, an answer"),
    pytest.param(no_message(lambda message: not message["content"].strip(), "The text field in the ContentBlock object "
                            "at messages.1.content.0 is blank. Add text to the text field, and try again."),
                 {"messages": [USER, {**SAID, "content": " \n"}, USER]}, {"messages": [USER, USER]},
                 "messages=rewritten", id="Bedrock, a blank"),
    pytest.param(no_message(lambda message: message["role"] == "system", "System role not supported"),
                 {"messages": [SYSTEM, USER]},
                 {"messages": [{**USER, "content": f"{SYSTEM['content']}\n\n{USER['content']}"}]},
                 "messages=rewritten", id="Gemma's template"),
    pytest.param(no_message(lambda message: message["role"] == "tool", "messages with role 'tool' must be a response "
                            "to a preceeding message with 'tool_calls'."),
                 {"messages": [USER, CALLED[2], USER]},
                 {"messages": [USER, {"role": "user", "content": "Result of a tool: 4"}, USER]}, "messages=rewritten",
                 id="a result of a call that was cut off"),
    pytest.param(unanswered, {"messages": [*CALLED[:2], USER]}, {"messages": [USER, USER]}, "messages=rewritten",
                 id="a call that was given up"),
    pytest.param(no_tool(lambda function: "parameters" not in function,
                         "tools.0.function.parameters: Field required"),
                 {"tools": [PING]}, {"tools": [{**PING, "function": {**PING["function"], "parameters":
                                     {"type": "object", "properties": {}}}}]},
                 "tools=rewritten", id="theroyallab/tabbyAPI#485"),
    pytest.param(no_tool(lambda function: "strict" in function,
                         "Extra inputs are not permitted, field: 'tools[0].function.strict', value: True"),
                 {"tools": [STRICT]}, {"tools": [WEATHER]}, "tools=rewritten", id="langchain-ai/langchainjs#9726"),
]  # fmt: skip


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("rule", "asked", "sent", "told"), LEARNED)
async def test_what_a_server_refuses_by_name_is_asked_otherwise_from_then_on(
    rule: Rule, asked: Json, sent: Json, told: str, status: int
) -> None:
    async with in_front_of(strict(rule, status=status)) as field:
        first = await field.ask(**asked)
        assert first.status == 200, first.body
        assert told in first.headers["x-gateway-adjusted"]
        second = await field.ask(**asked)
        assert second.status == 200, second.body

        bodies = field.sent
        assert len(bodies) == 3  # the one that was refused, and one for each answer
        for body in bodies[1:]:
            assert {name: body.get(name) for name in sent} == sent
