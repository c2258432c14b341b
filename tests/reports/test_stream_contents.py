"""Reports about what streams carry beside text: reasoning, pictures, calls that are none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, event, good_stream, payloads, stream, usage_chunk, words
from tests.fakes.scripted_server import Script, ScriptedServer
from tests.reports.field import HELLO, WEATHER, heard, in_front_of, saying

REASONING: list[Any] = [
    pytest.param(stream(ROLE, delta(reasoning="let me "), delta(reasoning="think"), *words("hello"), STOP, DONE),
                 id="BerriAI/litellm#20246"),
    pytest.param(stream(ROLE, *words("<thi", "nk>let me ", "think</thi", "nk>hello"), STOP, DONE),
                 id="langchain-ai/langchainjs#9726"),
    pytest.param(stream(ROLE, delta(reasoning_content="let me think", content=None), *words("hello"), STOP, DONE),
                 id="ChatGPTNextWeb/NextChat#6200"),
    pytest.param(stream(ROLE, *words("<think>\n", "let me think", "\n", "\n</think>\n\n", "hello"), STOP, DONE),
                 id="the blanks that templates put around the tags"),
]  # fmt: skip


THINKERS = [
    ("groq", "deepseek-r1-distill-llama-70b"),
    ("groq", "qwen/qwen3-32b"),
    ("cerebras", "qwen-3-235b-a22b-thinking-2507"),
    ("together", "Qwen/Qwen3-235B-A22B-Thinking-2507"),
    ("together", "deepseek-ai/DeepSeek-R1"),
    ("fireworks", "accounts/fireworks/models/deepseek-r1"),
    ("fireworks", "accounts/fireworks/models/qwen3-235b-a22b"),
]


@pytest.mark.parametrize(("provider", "model"), THINKERS)
async def test_the_tags_of_models_that_think_are_known_at_hosted_providers_too(provider: str, model: str) -> None:
    """AIProxyTeam/AIProxySwift#101, egoist/chatwise-releases#979"""
    text = "<think>\nlet me think\n</think>\n\nhello"
    async with in_front_of([saying({"content": text})], provider, model) as field:
        message = (await field.ask()).json["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("let me think", "hello")

    async with in_front_of(stream(ROLE, *words(*text), STOP, DONE), provider, model) as field:
        found = heard(await field.ask(stream=True))
    assert (found.reasoning, found.content) == ("let me think", "hello")


@pytest.mark.parametrize("script", REASONING)
async def test_reasoning_arrives_under_one_name(script: Script) -> None:
    async with in_front_of(script) as field:
        found = heard(await field.ask(stream=True))

    assert (found.reasoning, found.content) == ("let me think", "hello")


NOBODY: dict[str, Any] = {"name": "", "arguments": ""}


def picture(size: int, **members: Any) -> dict[str, Any]:
    """A delta with one picture of *size* bytes."""
    url = "data:image/png;base64," + "A" * size
    return {"content": "", "images": [{"type": "image_url", "image_url": {"url": url}}], **members}


async def test_a_picture_of_some_size_arrives() -> None:
    """open-webui/open-webui#20634, MiXaiLL76/auto_ai_router#190"""
    script = stream(ROLE, delta(**picture(1_500_000)), delta(**picture(10)), STOP, usage_chunk(), DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=True)
        whole = await field.ask()

    chunks = payloads(answer.body)
    assert chunks.pop() == "[DONE]"
    drawn = [picture for chunk in chunks for one in chunk["choices"] for picture in one["delta"].get("images", ())]
    assert [len(one["image_url"]["url"]) for one in drawn] == [1_500_022, 32]
    assert heard(answer).finish == {0: "stop"}
    assert len(whole.json["choices"][0]["message"]["images"]) == 2


async def test_a_picture_alone_is_an_answer() -> None:
    async with (
        ScriptedServer(stream(ROLE, delta(**picture(300_000)), STOP, DONE)) as first,
        ScriptedServer(good_stream("from backup")) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        answer = await gateway.chat(stream=True)

        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert b"data:image/png" in answer.body


STUBS: list[Any] = [
    pytest.param({"function_call": NOBODY}, id="CangShui/workbuddy-gateway#3"),
    pytest.param({"tool_calls": [{"index": 0, "id": "", "type": "function", "function": NOBODY}]}, id="as a tool"),
    pytest.param({"tool_calls": [{"index": 0, "id": None, "type": None, "function": None}]}, id="nulls"),
]


@pytest.mark.parametrize("offered", [{"tools": [WEATHER]}, {}])
@pytest.mark.parametrize("stub", STUBS)
async def test_a_call_without_name_and_arguments_is_none(stub: dict[str, Any], offered: dict[str, Any]) -> None:
    async with in_front_of(stream(HELLO, delta(finish="stop", **stub), DONE)) as field:
        answer = await field.ask(stream=True, **offered)
    assert (heard(answer).content, heard(answer).finish) == ("hello", {0: "stop"})
    assert b"function_call" not in answer.body
    assert b"tool_calls" not in answer.body

    async with in_front_of([saying({"content": "hello", **stub})]) as field:
        choice = (await field.ask(**offered)).json["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "hello")
    assert not choice["message"].get("function_call")
    assert not choice["message"].get("tool_calls")


@pytest.mark.parametrize("last", [{"text": None}, {}])
async def test_the_last_piece_of_a_text_completion_has_a_text(last: dict[str, Any]) -> None:
    """Typed clients read ``text`` as a string."""

    def piece(**members: Any) -> bytes:
        choice = {"index": 0, "finish_reason": None, "logprobs": None, **members}
        return event({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]})

    async with in_front_of(stream(piece(text="hello"), piece(finish_reason="stop", **last), DONE)) as field:
        answer = await field.gateway.post("/v1/completions", {"model": "m", "prompt": "hi", "stream": True})

    texts = [choice["text"] for chunk in payloads(answer.body)[:-1] for choice in chunk["choices"]]
    assert texts == ["hello", ""]
