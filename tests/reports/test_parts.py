"""Reports about parts of content in the words of another API, ids that are too long, and answers in several choices."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import USER, WEATHER, Json, Rule, call, hello, in_front_of, saying, strict

URL = "data:image/png;base64,iVBORw0KGgo="
PICTURE: Json = {"type": "image_url", "image_url": {"url": URL}}
SEEN: Json = {"type": "text", "text": "What is this?"}

PICTURES: list[Any] = [
    pytest.param({"type": "image_url", "image_url": URL}, PICTURE, id="ollama/ollama#7247"),
    pytest.param({"type": "input_image", "image_url": URL}, PICTURE, id="meangrinch/MangaTranslator#41"),
    pytest.param({"type": "input_image", "image_url": URL, "detail": "low"},
                 {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, id="with a detail"),
    pytest.param({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                 PICTURE, id="Anthropic's"),
    pytest.param({"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
                 {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}, id="Anthropic's, by address"),
]  # fmt: skip


@pytest.mark.parametrize("provider", ["openai", "groq", "vllm"])
async def test_a_part_whose_type_is_no_text_is_the_targets_business(provider: str) -> None:
    async with in_front_of(provider=provider) as field:
        for kind in (["text"], {"text": 1}, 5, None):
            parts = [SEEN, {"type": kind, "text": "a"}]
            answer = await field.ask(messages=[USER, {"role": "assistant", "content": parts}, USER])
            assert answer.status in (200, 400), answer.body


@pytest.mark.parametrize("provider", ["vllm", "llama_cpp_server", "sglang"])
@pytest.mark.parametrize(("given", "sent"), PICTURES)
async def test_a_picture_is_shown_in_openais_words(given: Json, sent: Json, provider: str) -> None:
    async with in_front_of(hello, provider, "qwen2.5-vl") as field:
        answer = await field.ask(messages=[{"role": "user", "content": [SEEN, given]}])

        assert answer.status == 200, answer.body
        assert field.sent[0]["messages"][0]["content"] == [SEEN, sent]


def _dictionary(body: Json) -> str | None:
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    odd = any(isinstance(part.get("image_url"), str) for part in parts)
    return "messages.0.content.1.image_url: Input should be a valid dictionary" if odd else None


def _kinds(body: Json) -> str | None:
    kinds = {part["type"] for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]}
    odd = kinds - {"text", "image_url"}
    return f"Invalid value: '{odd.pop()}'. Supported values are: 'text', 'image_url'; type is invalid" if odd else None


@pytest.mark.parametrize(("given", "rule"), [(PICTURES[0].values[0], _dictionary), (PICTURES[1].values[0], _kinds)])
async def test_a_server_of_which_nothing_is_known_says_so_once(given: Json, rule: Rule) -> None:
    async with in_front_of(strict(rule)) as field:
        for _ in range(2):
            answer = await field.ask(messages=[{"role": "user", "content": [SEEN, given]}])
            assert answer.status == 200, answer.body

        assert len(field.sent) == 3
        assert field.sent[-1]["messages"][0]["content"] == [SEEN, PICTURE]


TOLD: Json = {"type": "text", "text": "Hello."}
THOUGHTS: list[Any] = [
    pytest.param([{"type": "thinking", "thinking": "They greet.", "signature": "x"}, TOLD], "They greet.",
                 id="Anthropic's"),
    pytest.param([{"type": "reasoning", "text": "They greet."}, TOLD], "They greet.", id="the AI SDK's"),
    pytest.param([{"type": "redacted_thinking", "data": "abc"}, TOLD], None, id="not to be read"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "thought"), THOUGHTS)
async def test_thoughts_among_the_parts_are_reasoning(parts: list[Json], thought: str | None) -> None:
    async with in_front_of(hello, "vllm", "qwen3") as field:
        answer = await field.ask(messages=[USER, {"role": "assistant", "content": parts}, USER])

        assert answer.status == 200, answer.body
        made = field.sent[0]["messages"][1]
    assert made["content"] in ("Hello.", [TOLD])
    assert thought in (None, made.get("reasoning_content"), made.get("reasoning"))


LONG = "ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87"
WORDS: list[Any] = [
    pytest.param("Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, "
                 "but got a string with length 51 instead.", "string_above_max_length", id="vercel/ai#5171"),
    pytest.param("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", None,
                 id="Anthropic behind a proxy"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "code"), WORDS)
async def test_an_id_that_a_provider_does_not_take_becomes_one_it_takes(told: str, code: str | None) -> None:
    """microsoft/autogen#6377, langgenius/dify#28987"""

    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        return [refusal(400, told, code=code)] if LONG in json.dumps(body) else hello(request)

    made = {"role": "assistant", "content": None, "tool_calls": [call(LONG)]}
    async with in_front_of(script) as field:
        answer = await field.ask(messages=[USER, made, {"role": "tool", "tool_call_id": LONG, "content": "4"}])

        assert answer.status == 200, answer.body
        _, made, result = field.sent[-1]["messages"]
    assert made["tool_calls"][0]["id"] == result["tool_call_id"] != LONG


async def test_a_name_that_is_too_long_is_no_full_context() -> None:
    """mrexodia/ida-pro-mcp#129: agents that hear of a full context make their history shorter, in vain."""
    told = "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64."
    async with in_front_of([refusal(400, told, code="string_above_max_length")]) as field:
        answer = await field.ask(tools=[WEATHER])

    assert (answer.status, answer.error["code"]) == (400, "string_above_max_length")


async def test_who_asks_is_left_out_where_the_name_is_too_long() -> None:
    told = "Invalid 'user': string too long. Expected a string with maximum length 64."

    def rule(body: Json) -> str | None:
        return told if len(body.get("user", "")) > 64 else None

    async with in_front_of(strict(rule)) as field:
        answer = await field.ask(user="u" * 100)

        assert answer.status == 200, answer.body
        assert "user" not in field.sent[-1]


async def test_text_and_calls_in_choices_of_their_own_are_one_answer() -> None:
    """ericc-ch/copilot-api#81, zeroclaw-labs/zeroclaw#2136"""
    choices = [
        {"index": 0, "message": {"role": "assistant", "content": "I look."}, "finish_reason": "tool_calls"},
        {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call("a")]},
         "finish_reason": "tool_calls"},
        {"index": 0, "message": {"role": "assistant", "tool_calls": [call("b")]}, "finish_reason": "tool_calls"},
    ]  # fmt: skip
    async with in_front_of([saying({}, choices=choices)]) as field:
        answer = await field.ask(tools=[WEATHER])

    (choice,) = answer.json["choices"]
    assert (choice["index"], choice["finish_reason"]) == (0, "tool_calls")
    assert choice["message"] == {"role": "assistant", "content": "I look.", "tool_calls": [call("a"), call("b")]}


@pytest.mark.parametrize("member", ["message", "delta"])
async def test_a_call_that_is_no_list_is_joined_to_the_text_in_another_choice(member: str) -> None:
    choices = [
        {"index": 0, member: {"role": "assistant", "content": "I look."}, "finish_reason": "stop"},
        {"index": 1, member: {"role": "assistant", "tool_calls": call("a")}, "finish_reason": "tool_calls"},
    ]
    async with in_front_of([saying({}, choices=choices)]) as field:
        answer = await field.ask(tools=[WEATHER])

    (choice,) = answer.json["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {"role": "assistant", "content": "I look.", "tool_calls": [call("a")]}


SECOND: list[Any] = [
    pytest.param({"message": {"content": "two"}}, ["one", "two"], id="texts"),
    pytest.param({"text": "two"}, ["one", "two"], id="a text as in completions"),
    pytest.param({"message": {"content": "", "reasoning_content": "so"}}, ["one"], id="nothing but thoughts"),
    pytest.param({"message": {}}, ["one"], id="nothing"),
]


@pytest.mark.parametrize(("second", "said"), SECOND)
async def test_choices_stay_apart_where_both_have_something_to_say(second: Json, said: list[str]) -> None:
    first = {"message": {"role": "assistant", "content": "one", "reasoning_content": "thus"}}
    choices = [{"index": place, "finish_reason": "stop", **one} for place, one in enumerate((first, second))]
    async with in_front_of([saying({}, choices=choices)]) as field:
        answer = await field.ask()

    messages = [choice["message"] for choice in answer.json["choices"]]
    assert [message["content"] for message in messages] == said
    assert messages[0]["reasoning_content"] == "thus"
