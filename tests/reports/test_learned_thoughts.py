"""Reports about models that want to see what they have thought, which few clients keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import USER, Json, in_front_of, saying
from tests.reports.refusing import CALLED


def thoughtless(only_calls: bool, told: str) -> Callable[[RecordedRequest], Script]:
    """Wants to see what it has thought: with its calls, or always."""

    def script(request: RecordedRequest) -> Script:
        messages = json.loads(request.body)["messages"]
        due = [one for one in messages if one["role"] == "assistant" and ("tool_calls" in one or not only_calls)]
        if all(one.get("reasoning_content") for one in due):
            return [saying({"content": "hello"})]
        return [refusal(400, told)]

    return script


THOUGHTS: list[Any] = [
    pytest.param(True, "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
                 id="maximhq/bifrost#2093"),
    pytest.param(True, "The `reasoning_content` in the thinking mode must be passed back to the API.",
                 id="the-open-agent/openagent#2206"),
    pytest.param(True, "messages[51]: assistant message with tool_calls must include reasoning_content.",
                 id="esengine/DeepSeek-Reasonix#6173"),
    pytest.param(False, "Missing `reasoning_content` field in the assistant message at message index 3",
                 id="mnfst/llm-gateway#992"),
]  # fmt: skip


@pytest.mark.parametrize(("only_calls", "told"), THOUGHTS)
async def test_a_model_that_wants_its_thoughts_back_is_given_what_there_is(only_calls: bool, told: str) -> None:
    """An empty text is refused as well: NousResearch/hermes-agent#17341."""
    said: Json = {"role": "assistant", "content": "4 degrees."}
    thought: Json = {**CALLED[1], "reasoning": "Look it up."}
    async with in_front_of(thoughtless(only_calls, told)) as field:
        for made in (CALLED[1], thought):
            answer = await field.ask(messages=[USER, made, CALLED[2], said, USER])
            assert answer.status == 200, answer.body

        assert [one["messages"][1].get("reasoning_content") for one in field.sent[-2:]] == [" ", "Look it up."]
        assert ("reasoning_content" in field.sent[-1]["messages"][3]) is not only_calls
