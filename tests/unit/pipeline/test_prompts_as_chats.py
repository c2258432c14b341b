"""Text completions where the provider has chats alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import RunningGateway, config, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, USAGE, delta, payloads, refusal, stream, usage_chunk, whole, words
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import lacking, sent

COMPLETIONS = "/v1/completions"
CHATS_ALONE = {"endpoints": {"completions": {"support": "absent"}}}


async def complete(gateway: RunningGateway, *headers: str, **body: Any) -> Answer:
    return await gateway.post(COMPLETIONS, {"model": "m", "prompt": "Once upon", **body}, *headers)


def text_of(body: bytes) -> str:
    return "".join(one["choices"][0]["text"] for one in payloads(body)[:-1] if one["choices"])


@pytest.mark.parametrize("prompt", ["Once upon", ["Once upon"]])
async def test_the_prompt_is_what_a_user_says_and_the_reply_the_text(prompt: Any) -> None:
    async with (
        ScriptedServer([whole(" a time")]) as server,
        running_gateway(lacking(server, overrides=CHATS_ALONE)) as gateway,
    ):
        answer = await complete(gateway, prompt=prompt, max_tokens=5, stop=["."], echo=False, logprobs=None)

        assert server.requests[0].path == "/v1/chat/completions"
        (body,) = sent(server)
        assert body.pop("messages") == [{"role": "user", "content": "Once upon"}]
        assert body == {"model": "up1", "max_tokens": 5, "stop": ["."]}
        row = await gateway.row()
    assert answer.status == 200, answer.body
    (choice,) = answer.json["choices"]
    assert choice == {"text": " a time", "index": 0, "logprobs": None, "finish_reason": "stop"}
    assert (answer.json["object"], answer.json["id"], answer.json["usage"]) == ("text_completion", "cmpl-1", USAGE)
    assert answer.headers["x-gateway-adjusted"] == "prompt=emulated"
    assert (row["endpoint"], row["prompt_tokens"], row["completion_tokens"]) == ("completions", 9, 3)


async def test_a_stream_is_one_of_text() -> None:
    script = stream(
        ROLE, delta(reasoning_content="Hm."), *words(" a", " time"), delta(finish="length"), usage_chunk(), DONE
    )
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=CHATS_ALONE)) as gateway:
        answer = await complete(gateway, stream=True, stream_options={"include_usage": True})

        assert sent(server)[0]["stream"] is True
        row = await gateway.row()
    *chunks, end = payloads(answer.body)
    assert end == "[DONE]"
    assert text_of(answer.body) == " a time"
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert all("delta" not in choice for chunk in chunks for choice in chunk["choices"])
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]] == [None, None, "length"]
    assert chunks[-1]["usage"] == USAGE
    assert (row["status"], row["prompt_tokens"]) == (200, 9)


async def test_several_choices_come_together() -> None:
    facts = {**CHATS_ALONE, "params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
    async with ScriptedServer([whole("x")]) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answer = await complete(gateway, n=2)

        assert [choice["index"] for choice in answer.json["choices"]] == [0, 1], answer.body
        assert [choice["text"] for choice in answer.json["choices"]] == ["x", "x"]
        assert len(server.requests) == 2


async def test_several_choices_of_a_stream_keep_their_numbers() -> None:
    facts = {**CHATS_ALONE, "params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
    script = stream(ROLE, *words("x"), delta(finish="stop"), usage_chunk(), DONE)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=facts)) as gateway:
        answer = await complete(gateway, n=2, stream=True)

    told = [choice for chunk in payloads(answer.body)[:-1] for choice in chunk["choices"]]
    assert {choice["index"] for choice in told if choice["text"] == "x"} == {0, 1}
    assert {choice["index"] for choice in told if choice["finish_reason"] == "stop"} == {0, 1}


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2, 3]}, "prompt"),
        ({"echo": True}, "echo"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": 0}, "logprobs"),
    ],
)
async def test_what_a_chat_cannot_give_is_refused_before_anything_is_sent(asked: dict[str, Any], param: str) -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(lacking(server, overrides=CHATS_ALONE)) as gateway:
        answer = await complete(gateway, **asked)

        assert (answer.status, answer.json["error"]["code"]) == (400, "unsupported_parameter")
        assert answer.json["error"]["param"] == param
        assert not server.requests


async def test_a_client_may_have_that_left_out_or_refuse_the_whole() -> None:
    async with ScriptedServer([whole()]) as server, running_gateway(lacking(server, overrides=CHATS_ALONE)) as gateway:
        dropped = await complete(gateway, "x-gateway-unsupported: drop", echo=True, best_of=2)
        refused = await complete(gateway, "x-gateway-unsupported: reject")

        assert dropped.status == 200
        assert set(dropped.headers["x-gateway-adjusted"].split(", ")) == {
            "prompt=emulated", "best_of=dropped", "echo=dropped",
        }  # fmt: skip
        assert not {"echo", "best_of"} & sent(server)[0].keys()
        assert (refused.status, refused.json["error"]["param"]) == (400, "prompt")


async def test_a_target_with_text_completions_goes_first() -> None:
    async with ScriptedServer([whole()]) as chats, ScriptedServer([whole()]) as texts:
        settings = config(chats, texts)
        settings["providers"]["p1"]["overrides"] = CHATS_ALONE
        async with running_gateway(settings) as gateway:
            await complete(gateway)

        assert (len(chats.requests), len(texts.requests)) == (0, 1)


async def test_a_refusal_of_the_chat_is_told_as_ever() -> None:
    async with (
        ScriptedServer([refusal(400, "too hot", param="temperature")]) as server,
        running_gateway(lacking(server, overrides=CHATS_ALONE)) as gateway,
    ):
        whole_one = await complete(gateway)
        streamed = await complete(gateway, stream=True)

    assert (whole_one.status, streamed.status) == (400, 400)
    assert "too hot" in whole_one.json["error"]["message"]
