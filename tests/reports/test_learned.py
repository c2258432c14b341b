"""Reports about what no file can know: a server that refuses something says so, and is asked otherwise at once.

The words are those of the reports. Each server refuses only the first request; later ones are put as it takes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, request
from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import AS_PERSON, USER, WEATHER, Json, call, heard, hello, in_front_of, saying, strict

DEVELOPER: Json = {"role": "developer", "content": "Be brief."}
SYSTEM: Json = {"role": "system", "content": "Be brief."}
SAID: Json = {"role": "assistant", "content": "Where?"}
PING: Json = {"type": "function", "function": {"name": "ping", "description": "Says that it is there."}}
STRICT: Json = {"type": "function", "function": {**WEATHER["function"], "strict": True}}
CALLED: list[Json] = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [call("call_1")]},
    {"role": "tool", "tool_call_id": "call_1", "content": "4"},
]
Rule = Callable[[Json], str | None]


def without(name: str, told: str) -> Rule:
    return lambda body: told if name in body else None


def at_most(limit: int, told: str) -> Rule:
    return lambda body: told if max(body.get("max_tokens", 0), body.get("max_completion_tokens", 0)) > limit else None


def no_message(test: Callable[[Json], bool], told: str) -> Rule:
    return lambda body: told if any(map(test, body["messages"])) else None


def no_tool(test: Callable[[Json], bool], told: str) -> Rule:
    return lambda body: told if any(test(tool["function"]) for tool in body.get("tools", ())) else None


def late_system(body: Json) -> str | None:
    late = any(message["role"] == "system" for message in body["messages"][1:])
    return "System message must be at the beginning." if late else None


def user_after_tool(body: Json) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    after = ("tool", "user") in pairwise(roles)
    return "Unexpected role 'user' after role 'tool'" if after else None


def same_again(body: Json) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    again = any(one == other for one, other in pairwise(roles))
    return "After the optional system message, conversation roles must alternate user and assistant" if again else None


def twice(message: Json) -> Json:
    return {**message, "content": f"{message['content']}\n\n{message['content']}"}


def long_id(message: Json) -> bool:
    return any(len(made["id"]) != 9 for made in message.get("tool_calls", ()))


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


async def test_ids_are_rewritten_where_a_template_demands_nine_letters() -> None:
    """vllm-project/vllm#12332, at a server and a model of which nothing is known."""
    rule = no_message(long_id, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.")
    async with in_front_of(strict(rule)) as field:
        answer = await field.ask(messages=CALLED, tools=[WEATHER])

        assert answer.status == 200, answer.body
        made, result = field.sent[-1]["messages"][1:]
    assert made["tool_calls"][0]["id"] == result["tool_call_id"] != "call_1"


async def test_several_refusals_are_learned_one_after_another() -> None:
    rules = [without(name, f"Unrecognized request argument supplied: {name}") for name in ("seed", "user", "top_k")]
    async with in_front_of(strict(*rules)) as field:
        answer = await field.ask(seed=1, user="u", top_k=5)

        assert answer.status == 200, answer.body
        assert not {"seed", "user", "top_k"} & field.sent[-1].keys()


@pytest.mark.parametrize("streamed", [True, False])
async def test_streams_are_learned_from_as_well(streamed: bool) -> None:
    async with in_front_of(strict(without("seed", "property 'seed' is unsupported"))) as field:
        answer = await field.ask(seed=1, stream=streamed)

    text = heard(answer).content if streamed else answer.json["choices"][0]["message"]["content"]
    assert text == "hello"


async def test_usage_is_not_asked_for_where_that_is_refused() -> None:
    """earendil-works/pi#596, without anybody having declared it: the request was ours."""
    rule = without("stream_options", "Unrecognized request argument supplied: stream_options")
    async with in_front_of(strict(rule)) as field:
        for _ in range(2):
            found = heard(await field.ask(stream=True))
            assert (found.content, found.done) == ("hello", True)

        assert ["stream_options" in body for body in field.sent] == [True, False, False]


async def test_vectors_are_encoded_here_where_the_encoding_is_refused() -> None:
    """stevereiner/flexible-graphrag#17, mem0ai/mem0#4057: the SDKs ask for base64 by default."""

    def script(asked: RecordedRequest) -> Script:
        if json.loads(asked.body).get("encoding_format") == "base64":
            return [refusal(400, "encoding_format: only 'float' is supported")]
        return [wire_answer(b'{"data":[{"embedding":[0.5]}]}')]

    async with in_front_of(script) as field:
        body = {"model": "m", "input": "hi", "encoding_format": "base64"}
        answers = [await field.gateway.post("/v1/embeddings", body) for _ in range(2)]

        assert [answer.json["data"][0]["embedding"] for answer in answers] == ["AAAAPw=="] * 2
        assert len(field.sent) == 3


def _is_forced(body: Json) -> bool:
    return body.get("tool_choice") not in (None, "auto", "none")


FEATURES: list[Any] = [
    # What refuses a feature, who asks for it, and what the answer has to be.
    pytest.param(lambda body: "This response_format type is unavailable now"
                 if body.get("response_format", {}).get("type") == "json_schema" else None,
                 {"response_format": AS_PERSON}, id="plastic-labs/honcho#751"),
    pytest.param(lambda body: "'response_format.type' must be 'text'" if "response_format" in body else None,
                 {"response_format": AS_PERSON}, id="neither a schema nor an object"),
    pytest.param(lambda body: "'response_format.type' must be 'json_schema' or 'text'"
                 if body.get("response_format", {}).get("type") == "json_object" else None,
                 {"response_format": {"type": "json_object"}}, id="LM Studio"),
    pytest.param(lambda body: "json mode cannot be combined with tool/function calling"
                 if {"tools", "response_format"} <= body.keys() else None,
                 {"response_format": AS_PERSON, "tools": [WEATHER]}, id="agno-agi/agno#1065"),
    pytest.param(lambda body: '"stream=true" with response_format is currently not supported'
                 if body.get("stream") and "response_format" in body else None,
                 {"response_format": AS_PERSON, "stream": True}, id="pipecat-ai/pipecat#2576"),
    pytest.param(lambda body: "'n' : number must be at most 1" if body.get("n", 1) > 1 else None,
                 {"n": 2, "temperature": 0.5}, id="stanfordnlp/dspy#9380"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "asked"), FEATURES)
async def test_features_that_are_refused_are_had_by_other_means_from_then_on(rule: Rule, asked: Json) -> None:
    def script(request: RecordedRequest) -> Script:
        told = rule(json.loads(request.body))
        return [refusal(400, told)] if told else [saying({"content": '{"name":"Ada"}'})]

    async with in_front_of(script) as field:
        counts = []
        for _ in range(2):
            before = len(field.sent)
            answer = await field.ask(**asked)
            text = heard(answer).content if asked.get("stream") else answer.json["choices"][-1]["message"]["content"]
            assert json.loads(text) == {"name": "Ada"}
            counts.append(len(field.sent) - before)

    assert counts[1] < counts[0]  # nothing is refused a second time


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (lambda body: "Unsupported tool_choice. Expected 'auto' or 'none'" if _is_forced(body) else None,
         {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}),
        (lambda body: "registry.ollama.ai/library/gemma:2b does not support tools" if "tools" in body else None, {}),
    ],
    ids=["567-labs/instructor#1766", "ollama/ollama#9941"],
)  # fmt: skip
async def test_calls_that_are_refused_are_asked_for_in_words(rule: Rule, asked: Json) -> None:
    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        told = rule(body)
        if told:
            return [refusal(400, told)]
        named = {"name": "get_weather", "arguments": {"city": "Oslo"}}
        text = json.dumps({"city": "Oslo"} if asked else {"tool_calls": [named]})
        return [saying({"content": text})]

    async with in_front_of(script) as field:
        answer = await field.ask(tools=[WEATHER], **asked)

    (made,) = answer.json["choices"][0]["message"]["tool_calls"]
    assert (made["function"]["name"], json.loads(made["function"]["arguments"])) == ("get_weather", {"city": "Oslo"})


KEPT: list[Any] = [
    pytest.param({"logprobs": True}, "Unrecognized request argument supplied: logprobs", {}, id="of the contract"),
    pytest.param({"seed": 1}, "property 'seed' is unsupported", {"x-gateway-unsupported": "reject"}, id="as asked"),
    pytest.param({"max_tokens": 9000}, "max_tokens must be at most 8192", {"x-gateway-unsupported": "reject"},
                 id="a limit, as asked"),
    pytest.param({"temperature": 0.5}, "Invalid schema for response_format: missing additionalProperties", {},
                 id="Wei-Shaw/sub2api#4176"),
    pytest.param({"tools": [WEATHER]}, "Invalid schema for function 'get_weather'", {}, id="a tool that is wrong"),
    pytest.param({"temperature": 0.5}, "messages: at least one message must be the user's", {}, id="messages"),
    pytest.param({"max_tokens": 10}, "max_tokens must be at least 16", {}, id="too low a limit"),
    pytest.param({"max_tokens": 9000}, "max_tokens: invalid, see error 1234", {}, id="a number of another kind"),
    pytest.param({"messages": [{**USER, "reasoning_content": "so"}]}, "messages.0: no image may be sent", {},
                 id="nothing of members"),
    pytest.param({"messages": [{"role": "user", "content": "property 'seed' is unsupported"}], "seed": 1},
                 "no good content: property 'seed' is unsupported", {}, id="a client's own words"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "told", "headers"), KEPT)
async def test_all_other_refusals_are_passed_on_at_once(asked: Json, told: str, headers: dict[str, str]) -> None:
    async with in_front_of([refusal(400, told)]) as field:
        answer = await field.ask(*(f"{name}: {value}" for name, value in headers.items()), **asked)

        assert answer.status == 400
        assert told in answer.error["message"]
        assert len(field.sent) == 1


async def test_requests_known_by_their_bytes_are_made_anew() -> None:
    """What is around the messages is remembered from request to request, until it turns out to be refused."""
    seen: list[Json] = []

    def script(asked: RecordedRequest) -> Script:
        seen.append(json.loads(asked.body))
        refused = len(seen) > 3 and "seed" in seen[-1]
        return [refusal(400, "property 'seed' is unsupported")] if refused else hello(asked)

    async with in_front_of(script) as field:
        client = await field.gateway.connect()
        for number in range(6):
            said = {"role": "user", "content": f"{number}"}
            await client.send(request(CHAT, chat_body(messages=[said], seed=1)))
            assert (await client.answer()).status == 200

    assert ["seed" in body for body in seen] == [True] * 4 + [False] * 3
