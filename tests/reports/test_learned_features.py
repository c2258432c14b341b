"""What else a refusal teaches: at streams, at vectors, of whole features; and the refusals that teach nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.gateway import CHAT, chat_body, request
from tests.fakes.openai_answers import refusal
from tests.fakes.scripted_server import RecordedRequest, Script
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import AS_PERSON, USER, WEATHER, Json, Rule, heard, hello, in_front_of, saying, strict
from tests.reports.refusing import CALLED, long_id, no_message, without


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
        (lambda body: "tool_choice: Input should be 'auto' or 'none'" if _is_forced(body) else None,
         {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}),
        (lambda body: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
         if "tools" in body else None, {}),
        (lambda body: "registry.ollama.ai/library/gemma:2b does not support tools" if "tools" in body else None, {}),
    ],
    ids=["567-labs/instructor#1766", "pydantic's list", "vLLM without a parser of calls", "ollama/ollama#9941"],
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


@pytest.mark.parametrize(
    ("most", "told", "stops"),
    [
        (0, "Unsupported parameter: 'stop' is not supported with this model.", ["END"]),
        (1, "stop: at most 1 sequences are supported", ["never", "END"]),
        (2, "Invalid 'stop': array too long. Expected an array with maximum length 2, but got an array with length 3 "
            "instead.", ["never", "ever", "END"]),
    ],
    ids=["OpenAI's models that reason", "one", "OpenAI's own words"],
)  # fmt: skip
async def test_answers_are_watched_for_stops_that_are_refused(most: int, told: str, stops: list[str]) -> None:
    def script(request: RecordedRequest) -> Script:
        refused = len(json.loads(request.body).get("stop", ())) > most
        return [refusal(400, told)] if refused else [saying({"content": "one END two"})]

    async with in_front_of(script) as field:
        for _ in range(2):
            answer = await field.ask(stop=stops)
            assert answer.status == 200, answer.body
            assert answer.json["choices"][0]["message"]["content"] == "one "

        assert [len(body.get("stop", ())) for body in field.sent] == [len(stops), most, most]


KEPT: list[Any] = [
    pytest.param({"logprobs": True}, "Unrecognized request argument supplied: logprobs", {}, id="of the contract"),
    pytest.param({"seed": 1}, "property 'seed' is unsupported", {"x-gateway-unsupported": "reject"}, id="as asked"),
    pytest.param({"max_tokens": 9000}, "max_tokens must be at most 8192", {"x-gateway-unsupported": "reject"},
                 id="a limit, as asked"),
    pytest.param({"temperature": 0.5}, "Invalid schema for response_format: missing additionalProperties", {},
                 id="Wei-Shaw/sub2api#4176"),
    pytest.param({"tools": [WEATHER]}, "Invalid schema for function 'get_weather'", {}, id="a tool that is wrong"),
    pytest.param({"temperature": 0.5}, "messages: at least one message must be the user's", {}, id="messages"),
    pytest.param({"max_tokens": 10}, "max_tokens must be at least 16", {"x-gateway-unsupported": "reject"},
                 id="too low a limit, as asked"),
    pytest.param({"max_tokens": 10}, "max_tokens must be at least 32000", {}, id="a limit that costs far more"),
    pytest.param({"stop": "END"}, "stop: Input should be a valid list", {"x-gateway-unsupported": "reject"},
                 id="a form, as asked"),
    pytest.param({"stop": ["END"]}, "stop.str: Input should be a valid string; stop.list: Input should be a valid list",
                 {}, id="forms of all kinds"),
    pytest.param({"stop": ["END"]}, "'stop' must be a string or an array of strings", {}, id="one form or the other"),
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
