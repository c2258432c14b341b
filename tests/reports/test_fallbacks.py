"""Reports about what is tried again and what goes to the next target: in vain, too late, or not at all."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, good_stream, refusal, stream
from tests.fakes.scripted_server import Hang, Script, ScriptedServer, chunked_head
from tests.reports.field import heard, saying, told

pytestmark = pytest.mark.usefixtures("short_backoff")


def silent(finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A whole answer without a word."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "", **message}, "finish_reason": finish}
    return {**completion(), "choices": [choice]}


FALLING: list[Any] = [
    pytest.param(told({"error": {"message": "ResourceExhausted", "code": 502}}), id="decolua/9router#3242"),
    pytest.param(told({**completion(), "choices": []}), id="ENTERPILOT/GoModel#947"),
    pytest.param(told({**completion(), "choices": None}), id="diegosouzapw/OmniRoute#3424"),
    pytest.param(told({**completion(), "choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}),
                 id="a choice without a message"),
    pytest.param(told(silent()), id="mnfst/llm-gateway#2709"),
    pytest.param(told(silent(content=None, tool_calls=[])), id="diegosouzapw/OmniRoute#7000"),
    pytest.param(stream(ROLE, STOP, DONE), id="BerriAI/litellm#14655, a stream"),
    pytest.param([refusal(529, "overloaded", type="overloaded_error")], id="openclaw/openclaw#69642"),
    pytest.param([refusal(402, "Insufficient credits")], id="a target that is out of credit"),
    pytest.param([refusal(404, "The model `up1` does not exist")], id="a target that lost its model"),
    pytest.param(told("", 200), id="an empty body"),
    pytest.param(told("", 204), id="no content"),
    pytest.param(told("", 302, headers="location: http://127.0.0.1:9/\r\n"), id="a redirect"),
    pytest.param([refusal(429, "rate limited")], id="BerriAI/litellm#20870"),
    pytest.param([refusal(500, "model name=qwen failed to load", type="server_error")],
                 id="NousResearch/hermes-agent#102044"),
    pytest.param([refusal(503, "down")], id="BerriAI/litellm#10317"),
    pytest.param(stream(b'data: {"error":{"message":"no capacity","type":"server_error","code":503}}\n\n'),
                 id="BerriAI/litellm#38610"),
]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("script", FALLING)
async def test_a_failure_before_any_content_leads_to_the_fallback(script: Script, streamed: bool) -> None:
    backup: Script = good_stream("from backup") if streamed else [saying({"content": "from backup"})]
    async with ScriptedServer(script) as first, ScriptedServer(backup) as second:
        settings = config(first, second, retries={"attempts": 2})
        settings["aliases"] = {"gpt-4o-mini": "m"}
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(model="gpt-4o-mini", stream=streamed, timeout=5)

        text = heard(answer).content if streamed else answer.json["choices"][0]["message"]["content"]
        assert text == "from backup"
        assert json.loads(second.requests[0].body)["model"] == "up2"


LAST_WORDS: list[Any] = [
    # no other target, a limit that was reached, a refusal by the filter, and one in words
    pytest.param(silent(), 1, "stop", id="alone"),
    pytest.param(silent("length"), 2, "length", id="all of it thought"),
    pytest.param(silent("content_filter"), 2, "content_filter", id="filtered"),
    pytest.param(silent(content=None, refusal="I cannot."), 2, "stop", id="refused"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("body", "targets", "reason"), LAST_WORDS)
async def test_an_answer_without_text_may_be_the_answer(
    body: dict[str, Any], targets: int, reason: str, streamed: bool
) -> None:
    """aj47/SpeakMCP#797: nothing more may be to be had."""
    async with ScriptedServer(told(body)) as first, ScriptedServer([saying({"content": "from backup"})]) as second:
        async with running_gateway(config(*(first, second)[:targets], retries={"attempts": 3})) as gateway:
            answer = await gateway.chat(stream=streamed)

        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert answer.status == 200
    finish = heard(answer).finish[0] if streamed else answer.json["choices"][0]["finish_reason"]
    assert finish == reason


async def test_an_answer_without_a_word_is_paid_for_all_the_same() -> None:
    async with (
        ScriptedServer(told(silent())) as first,
        ScriptedServer([saying({"content": "from backup"})]) as second,
        running_gateway(config(first, second)) as gateway,
    ):
        await gateway.chat()
        row = await gateway.row()

    assert row["attempts"][0]["failure"] == "empty"
    assert row["cost_nusd"] > 0
    assert row["attempts"][0]["cost_nusd"] > 0


async def test_what_a_client_got_wrong_is_not_tried_again() -> None:
    """Wei-Shaw/sub2api#4176"""
    async with ScriptedServer([refusal(400, "missing additionalProperties")]) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            answer = await gateway.chat()

        assert (answer.status, len(server.requests)) == (400, 1)


async def test_two_retries_are_three_attempts() -> None:
    """BerriAI/litellm#7130"""
    async with ScriptedServer([refusal(500, "boom")]) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            answer = await gateway.chat()

        assert (answer.status, len(server.requests)) == (502, 3)


async def test_each_wait_is_the_one_that_the_latest_answer_asks_for() -> None:
    """BerriAI/litellm#20722"""

    def script(request: Any) -> Script:
        if request.number > 2:
            return [saying({"content": "hello"})]
        wait = "retry-after-ms: 20\r\n" if request.number == 1 else "retry-after-ms: 60\r\n"
        return [refusal(429, "slow", headers=wait)]

    async with ScriptedServer(script) as server:
        async with running_gateway(config(server, retries={"attempts": 3})) as gateway:
            begun = time.monotonic()
            answer = await gateway.chat()
            waited = time.monotonic() - begun

        assert (answer.status, len(server.requests)) == (200, 3)
        assert waited >= 0.08


async def test_a_fallback_whose_context_is_too_small_is_passed_over() -> None:
    """BerriAI/litellm#31557"""
    full = [refusal(400, "This model's maximum context length is 2048 tokens. However, you requested 4000 tokens.")]
    async with (
        ScriptedServer([refusal(429, "rate")]) as busy,
        ScriptedServer(full) as small,
        ScriptedServer([saying({"content": "from large"})]) as large,
    ):
        settings = config(busy, small, large, retries={"attempts": 3})
        settings["models"]["m"]["targets"][1]["context_window"] = 2048
        settings["models"]["m"]["targets"][2]["context_window"] = 131_072
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(messages=[{"role": "user", "content": "word " * 3500}])

    assert answer.json["choices"][0]["message"]["content"] == "from large"


async def test_a_target_that_says_nothing_is_given_up_for_the_fallback() -> None:
    """BerriAI/litellm#19909, BerriAI/litellm#38358"""
    async with ScriptedServer([chunked_head(), Hang()]) as mute, ScriptedServer(good_stream("from backup")) as second:
        settings = config(mute, second, retries={"attempts": 2}, timeouts={"first_event": "100ms"})
        async with running_gateway(settings) as gateway:
            answer = await gateway.chat(stream=True)

    assert heard(answer).content == "from backup"
