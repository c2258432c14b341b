"""Reports about values that one server takes in a single form, or from a least or up to a highest number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import CHAT
from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.reports.field import USER, Json, Rule, hello, in_front_of, saying, strict

OBJECT: Json = {"response_format": {"type": "json_object"}}
SYSTEM: Json = {"role": "system", "content": "Be brief."}


def _not(kind: type, name: str, words: str) -> Rule:
    return lambda body: words if name in body and type(body[name]) is not kind else None


def _beyond(names: tuple[str, ...], low: int, high: int, words: str) -> Rule:
    return lambda body: words if any(name in body and not low <= body[name] <= high for name in names) else None


def _no_json(body: Json) -> str | None:
    words = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    said = "response_format" not in body or "json" in json.dumps(body["messages"]).lower()
    return None if said else words


LIMITS = ("max_tokens", "max_completion_tokens")
FORMS: list[Any] = [
    # What refuses, what is asked, what is sent in its place, and what is told of it.
    pytest.param(_not(list, "stop", "Invalid request body: stop: Input should be a valid list"),
                 {"stop": "END"}, {"stop": ["END"]}, "stop=rewritten", id="raullenchai/Rapid-MLX#2358"),
    pytest.param(_not(list, "stop", "json: cannot unmarshal string into Go struct field ChatRequest.stop of type "
                      "[]string"),
                 {"stop": "END"}, {"stop": ["END"]}, "stop=rewritten", id="maximhq/bifrost#7218, said plainly"),
    pytest.param(_not(str, "stop", "invalid type for 'stop' field: []interface {}"),
                 {"stop": ["END"]}, {"stop": "END"}, "stop=rewritten", id="ollama/ollama#5545"),
    pytest.param(_not(str, "stop", "stop: Input should be a valid string"),
                 {"stop": ["END", "FIN", "ENDE"]}, {"stop": "END"}, "stop=emulated", id="one of several"),
    pytest.param(_not(int, "logprobs", "Invalid type for 'logprobs': expected an integer, but got a boolean instead."),
                 {"logprobs": True, "top_logprobs": 3}, {"logprobs": 3, "top_logprobs": None}, "logprobs=mapped",
                 id="BerriAI/litellm#10645"),
    pytest.param(_not(int, "logprobs", "logprobs: Input should be a valid integer"),
                 {"logprobs": True}, {"logprobs": 1}, "logprobs=mapped", id="the flag alone"),
    pytest.param(_beyond(("top_logprobs",), 0, 5, "Invalid value for 'top_logprobs': must be less than or equal to 5"),
                 {"logprobs": True, "top_logprobs": 20}, {"logprobs": True, "top_logprobs": 5}, "top_logprobs=clamped",
                 id="confident-ai/deepeval#843"),
    pytest.param(_beyond(("top_logprobs",), 0, 5, "Invalid 'top_logprobs': 20. Expected an integer in range [0, 5]"),
                 {"logprobs": True, "top_logprobs": 20}, {"logprobs": True, "top_logprobs": 5}, "top_logprobs=clamped",
                 id="huangdihd/programmer#14"),
    pytest.param(_beyond(("top_logprobs",), 0, 4, "20 is greater than the maximum of 4 - 'top_logprobs'"),
                 {"logprobs": True, "top_logprobs": 20}, {"logprobs": True, "top_logprobs": 4}, "top_logprobs=clamped",
                 id="lmg-anon/mikupad#55, in a chat"),
    pytest.param(_beyond(LIMITS, 16, 9999, "Invalid 'max_output_tokens': integer below minimum value. Expected a value "
                         ">= 16, but got 10 instead."),
                 {"max_tokens": 10}, {"max_tokens": 16}, "max_tokens=clamped", id="vectorize-io/hindsight#58"),
    pytest.param(_beyond(LIMITS, 16, 9999, "max_completion_tokens must be at least 16"),
                 {"max_completion_tokens": 5}, {"max_completion_tokens": 16}, "max_completion_tokens=clamped",
                 id="braintrustdata/lingua#186"),
    pytest.param(_beyond(LIMITS, 16, 8192, "Invalid max_tokens value, the valid range of max_tokens is [16, 8192]"),
                 {"max_tokens": 1}, {"max_tokens": 16}, "max_tokens=clamped", id="a range"),
    pytest.param(_no_json, {**OBJECT, "messages": [USER]},
                 {**OBJECT, "messages": [{"role": "system", "content": "Answer with JSON."}, USER]},
                 "messages=rewritten", id="mem0ai/mem0#3559"),
    pytest.param(_no_json, {**OBJECT, "messages": [SYSTEM, USER]},
                 {"messages": [{**SYSTEM, "content": "Be brief.\n\nAnswer with JSON."}, USER]},
                 "messages=rewritten", id="meta-llama/PurpleLlama#94"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "asked", "sent", "told"), FORMS)
async def test_the_form_and_the_bounds_that_are_told_are_kept_to(
    rule: Rule, asked: Json, sent: Json, told: str
) -> None:
    async with in_front_of(strict(rule)) as field:
        for _ in range(2):
            answer = await field.ask(**asked)
            assert answer.status == 200, answer.body
            assert told in answer.headers["x-gateway-adjusted"]

        assert len(field.sent) == 3  # the one that was refused, and one for each answer
        for body in field.sent[1:]:
            assert {name: body.get(name) for name in sent} == sent


@pytest.mark.parametrize("words", [words for case in FORMS if (words := case.values[0](case.values[1]))])
async def test_nothing_is_put_otherwise_for_a_client_that_wants_nothing_changed(words: str) -> None:
    asked = next(case.values[1] for case in FORMS if case.values[0](case.values[1]) == words)
    async with in_front_of([refusal(400, words)]) as field:
        answer = await field.ask("x-gateway-unsupported: reject", **asked)

        assert (answer.status, len(field.sent)) == (400, 1)


async def test_the_answer_is_watched_for_the_stops_beside_the_one() -> None:
    def script(request: RecordedRequest) -> Script:
        refused = not isinstance(json.loads(request.body)["stop"], str)
        words = "stop: Input should be a valid string"
        return [refusal(400, words)] if refused else [saying({"content": "one FIN two"})]

    async with in_front_of(script) as field:
        for _ in range(2):
            answer = await field.ask(stop=["END", "FIN", "ENDE"])
            assert answer.json["choices"][0]["message"]["content"] == "one "


async def test_a_number_of_stops_and_their_form_are_learned_together() -> None:
    """Two refusals: the stops that neither lesson sends are all watched for."""

    def script(request: RecordedRequest) -> Script:
        stop = json.loads(request.body)["stop"]
        if isinstance(stop, list):
            told = "stop: at most 2 sequences are supported" if len(stop) > 2 else "stop must be a string"
            return [refusal(400, told)]
        return [saying({"content": "one LAST two"})]

    async with in_front_of(script) as field:
        answer = await field.ask(stop=["END", "FIN", "LAST"])
        assert answer.json["choices"][0]["message"]["content"] == "one "


async def test_log_probabilities_asked_for_by_number_are_told_in_openais_shape() -> None:
    arrays = {"tokens": ["hi"], "token_logprobs": [-0.5], "top_logprobs": [{"hi": -0.5, "ho": -1.5}]}

    def script(request: RecordedRequest) -> Script:
        if json.loads(request.body)["logprobs"] is True:
            return [refusal(400, "logprobs: Input should be a valid integer")]
        choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        return [saying({}, choices=[{**choice, "logprobs": arrays}])]

    async with in_front_of(script) as field:
        answer = await field.ask(logprobs=True, top_logprobs=2)
        (token,) = answer.json["choices"][0]["logprobs"]["content"]
        assert (token["token"], len(token["top_logprobs"])) == ("hi", 2)


async def test_messages_that_say_json_are_not_told_to() -> None:
    said = [{"role": "user", "content": "As Json, please."}]
    async with in_front_of(strict(_no_json)) as field:
        await field.ask(**OBJECT)
        answer = await field.ask(**OBJECT, messages=said)
        plain = await field.ask()

        assert (answer.status, plain.status) == (200, 200)
        assert field.sent[-2]["messages"] == said
        assert field.sent[-1]["messages"] == [USER]
        assert "messages" not in answer.headers.get("x-gateway-adjusted", "")


async def test_text_completions_have_the_form_of_their_stops() -> None:
    """ollama/ollama#5545."""

    def script(request: RecordedRequest) -> Script:
        body = json.loads(request.body)
        if isinstance(body["stop"], list):
            return [refusal(400, "invalid type for 'stop' field: []interface {}")]
        return hello(request)

    async with in_front_of(script) as field:
        await field.gateway.post(CHAT.replace("/chat", ""), {"model": "m", "prompt": "hi", "stop": ["END"]})

        assert [body["stop"] for body in field.sent] == [["END"], "END"]
