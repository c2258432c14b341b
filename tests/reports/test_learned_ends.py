"""Reports about templates that want the user at the beginning, or at the end, of a conversation."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import USER, Json, Rule, hello, in_front_of, strict
from tests.reports.refusing import CALLED, SAID, SYSTEM, twice

BEGIN: Json = {"role": "user", "content": "Begin."}
GO_ON: Json = {"role": "user", "content": "Go on from there, without repeating any of it."}
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
TEMPLATE = (
    "\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...% 2 == 0) -%}↵ "
    '{{ raise_exception("Conversation roles must alternate user... message content is string\n ^\nError: '
    f"Jinja Exception: {ALTERNATE}"
)


def _turns(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"] if message["role"] != "system"]


def _begins(words: str) -> Rule:
    return lambda body: words if _turns(body)[0] == "assistant" else None


def _ends(words: str) -> Rule:
    return lambda body: words if _turns(body)[-1] == "assistant" else None


def _alternates(words: str) -> Rule:
    def rule(body: Json) -> str | None:
        turns = _turns(body)
        return words if turns[0] != "user" or any(one == other for one, other in pairwise(turns)) else None

    return rule


ENDS: list[Any] = [
    # What refuses, what is asked, and what is sent in its place.
    pytest.param(_alternates(ALTERNATE), [SAID, USER], [BEGIN, SAID, USER], id="run-llama/llama_index#11731"),
    pytest.param(_alternates("After the optional system message, conversation roles must alternate user and assistant "
                             "roles except for tool calls and results."),
                 [SYSTEM, SAID, USER, USER], [SYSTEM, BEGIN, SAID, twice(USER)], id="mistralai/mistral-vibe#1006"),
    pytest.param(_alternates(TEMPLATE), [SYSTEM, USER, USER], [SYSTEM, twice(USER)],
                 id="nextai-translator/raycast-openai-translator#34"),
    pytest.param(_begins('messages: first message must use the "user" role'), [SAID, USER], [BEGIN, SAID, USER],
                 id="anthropics/anthropic-sdk-typescript#622"),
    pytest.param(_begins("A conversation must start with a user message. Try again with a conversation that starts "
                         "with a user message."), [SYSTEM, SAID, USER], [SYSTEM, BEGIN, SAID, USER],
                 id="deepgram/deepgram-python-sdk#760"),
    pytest.param(_begins("First message in chat history should not be Assistant."), [SAID, USER], [BEGIN, SAID, USER],
                 id="aws-samples/amazon-nova-samples#133"),
    pytest.param(_ends("This model does not support assistant message prefill. The conversation must end with a user "
                       "message."), [USER, SAID], [USER, SAID, GO_ON], id="cortexkit/magic-context#511"),
    pytest.param(_ends("Expected last role User or Tool (or Assistant with prefix True) for serving but got "
                       "assistant"), [USER, SAID], [USER, SAID, GO_ON], id="0xPlaygrounds/rig#708"),
    pytest.param(_ends("Assistant response prefill is incompatible with enable_thinking."), [USER, SAID],
                 [USER, SAID, GO_ON], id="llama.cpp while thinking"),
]  # fmt: skip


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(("rule", "asked", "sent"), ENDS)
async def test_a_conversation_begins_and_ends_as_the_template_wants_it(
    rule: Rule, asked: list[Json], sent: list[Json], status: int
) -> None:
    def script(request: RecordedRequest) -> Script:
        told = rule(json.loads(request.body))
        told = told if told is None or status == 400 or "Jinja" in told else f"Error: Jinja Exception: {told}"
        return [refusal(status, told)] if told is not None else hello(request)

    async with in_front_of(script) as field:
        for _ in range(2):
            answer = await field.ask(messages=asked)
            assert answer.status == 200, answer.body
            assert "rewritten" in answer.headers["x-gateway-adjusted"]

        assert [body["messages"] for body in field.sent] == [asked, sent, sent]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        (_begins("The conversation must start with a user message."), [SAID, USER]),
        (_ends("The conversation must end with a user message."), [USER, SAID]),
    ],
    ids=["at the beginning", "at the end"],
)
async def test_nothing_is_added_for_a_client_that_wants_nothing_changed(rule: Rule, asked: list[Json]) -> None:
    async with in_front_of(strict(rule)) as field:
        before = await field.ask("x-gateway-unsupported: reject", messages=asked)
        assert (before.status, len(field.sent)) == (400, 1)

        assert (await field.ask(messages=asked)).status == 200  # that is learned from
        after = await field.ask("x-gateway-unsupported: reject", messages=asked)
        assert (after.status, field.sent[-1]["messages"], len(field.sent)) == (400, asked, 4)


@pytest.mark.parametrize(
    ("messages", "more"),
    [
        (CALLED[:2], {}),
        ([USER, {**SAID, "prefix": True}], {}),
        ([USER, SAID], {"continue_final_message": True}),
    ],
    ids=["a call", "a prefix", "an answer to go on with"],
)
async def test_what_is_meant_to_be_last_stays_so(messages: list[Json], more: Json) -> None:
    words = "The conversation must end with a user message."
    async with in_front_of([refusal(400, words)]) as field:
        answer = await field.ask(messages=messages, **more)

        assert (answer.status, len(field.sent)) == (400, 1)


async def test_conversations_of_the_usual_kind_are_not_touched_afterwards() -> None:
    async with in_front_of(strict(_alternates(ALTERNATE))) as field:
        await field.ask(messages=[SAID, USER])
        answer = await field.ask(messages=[SYSTEM, USER, SAID, USER])

        assert field.sent[-1]["messages"] == [SYSTEM, USER, SAID, USER]
        assert "messages" not in answer.headers.get("x-gateway-adjusted", "")
