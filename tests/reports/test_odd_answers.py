"""Reports about answers that hold values of a kind that OpenAI's never have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_answers import DONE, ROLE, STOP, completion, delta, event, payloads, stream, usage_chunk
from tests.fakes.scripted_server import Script
from tests.fakes.scripted_server import answer as wire_answer
from tests.reports.field import WEATHER, Json, call, heard, in_front_of, saying

NO_NUMBERS = ["NaN", "-Infinity"]


def with_logprob(written: bytes, number: str) -> bytes:
    """*written* with a log probability that is no number in JSON beside its finish reason."""
    token = f'"logprobs": {{"content": [{{"token": "hi", "logprob": {number}, "bytes": [104], "top_logprobs": []}}]}}'
    return written.replace(b'"finish_reason"', token.encode() + b', "finish_reason"', 1)


@pytest.mark.parametrize("number", NO_NUMBERS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_probability_that_json_cannot_say_costs_nobody_the_answer(number: str, streamed: bool) -> None:
    """sgl-project/sglang#4097, madroidmaq/mlx-omni-server#56: a token that a grammar rules out has minus infinity."""
    script: Script = [wire_answer(with_logprob(json.dumps(completion("hi")).encode(), number))]
    if streamed:
        script = stream(ROLE, with_logprob(delta(content="hi"), number), STOP, DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=streamed, logprobs=True)

    if streamed:
        assert (heard(answer).content, heard(answer).errors) == ("hi", [])
    choices: list[Any] = [
        choice
        for one in (payloads(answer.body)[:-1] if streamed else [answer.json])
        for choice in one["choices"]
        if choice.get("logprobs")
    ]
    assert [choice["logprobs"]["content"][0]["logprob"] for choice in choices] == [-9999.0]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_speed_that_json_cannot_say_does_so_neither(streamed: bool) -> None:
    whole = json.dumps(completion("hi", timings={"per_second": 1})).replace('"per_second": 1', '"per_second": Infinity')
    async with in_front_of([wire_answer(whole.encode())]) as field:
        answer = await field.ask(stream=streamed)

    assert answer.status == 200, answer.body
    assert b"Infinity" not in answer.body


async def test_a_vector_with_a_number_that_is_none_is_no_vector() -> None:
    script = [wire_answer(b'{"object": "list", "data": [{"index": 0, "embedding": [NaN, 1.0]}]}')]
    async with in_front_of(script) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": "hi"})

    assert answer.status == 502


def numbered(*numbers: Any) -> list[bytes]:
    """The pieces of one answer, each as a choice of such a number."""
    pieces = [{"role": "assistant", "content": "h"}, {"content": "i"}, {"content": "!"}]
    return [
        event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
        for place, (piece, number) in enumerate(zip(pieces, numbers, strict=True))
        for choice in ({"index": number, "delta": piece, "finish_reason": "stop" if place == 2 else None},)
    ]


NUMBERS: list[Any] = [
    pytest.param((1, 2, 3), id="huggingface/text-generation-inference#1648"),
    pytest.param((0, 1, 2), id="microsoft/foundry-local#263"),
    pytest.param((1, 1, 1), id="BerriAI/litellm#376"),
]


@pytest.mark.parametrize("events", NUMBERS)
async def test_the_only_choice_of_a_stream_is_the_first(events: tuple[int, ...]) -> None:
    async with in_front_of(stream(*numbered(*events), DONE)) as field:
        found = heard(await field.ask(stream=True))

    assert (found.content, found.finish, found.done) == ("hi!", {0: "stop"}, True)


async def test_the_only_choice_of_an_answer_is_the_first() -> None:
    said = {"index": 4, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    async with in_front_of([saying({}, choices=[said])]) as field:
        answer = await field.ask()

    assert answer.json["choices"] == [{**said, "index": 0}]


COUNTS = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
USAGES: list[Any] = [
    pytest.param({name: str(count) for name, count in COUNTS.items()}, COUNTS, id="texts"),
    pytest.param({name: float(count) for name, count in COUNTS.items()}, COUNTS, id="philschmid/easyllm#42"),
    pytest.param({"input_tokens": 9, "output_tokens": 3}, COUNTS, id="the names of responses"),
    pytest.param({**COUNTS, "total_tokens": None}, COUNTS, id="a total that is null"),
    pytest.param({**COUNTS, "completion_tokens": None}, COUNTS, id="vercel/ai#2763"),
    pytest.param({}, None, id="nothing"),
    pytest.param({"prompt_tokens": None, "input_tokens": 9, "output_tokens": 3}, COUNTS, id="a null beside them"),
    pytest.param({**COUNTS, "prompt_tokens": -1}, None, id="nonsense"),
    pytest.param({**COUNTS, "prompt_tokens": "\u00b2"}, None, id="a digit that is no number"),
    pytest.param({**COUNTS, "prompt_tokens": "9" * 400}, None, id="a text beyond all bounds"),
    pytest.param({**COUNTS, "prompt_tokens": 1e300}, None, id="a number beyond all bounds"),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("usage", "told"), USAGES)
async def test_figures_are_whole_numbers_under_the_names_that_clients_read(
    usage: Json, told: Json | None, streamed: bool
) -> None:
    script: Script = [saying({"content": "hello"}, usage=usage)]
    if streamed:
        script = stream(ROLE, delta(content="hello"), STOP, usage_chunk(usage), DONE)
    async with in_front_of(script) as field:
        answer = await field.ask(stream=streamed, stream_options={"include_usage": True} if streamed else None)
        row = await field.gateway.row()

    if told is None:
        assert answer.json.get("usage") is None if not streamed else heard(answer).usages == []
        return
    assert (heard(answer).usages[0] if streamed else answer.json["usage"]) == told
    assert (row["prompt_tokens"], row["completion_tokens"]) == (9, 3)


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_names_its_model(streamed: bool) -> None:
    """anomalyco/opencode#42918: an empty name, which clients take for a failure."""
    script: Script = [saying({"content": "hi"}, model="")]
    if streamed:
        script = stream(delta(role="assistant", content="hi", model=""), delta(finish="stop", model=""), DONE)
    async with in_front_of(script, model="qwen") as field:
        answer = await field.ask(stream=streamed)

    assert {one["model"] for one in (payloads(answer.body)[:-1] if streamed else [answer.json])} == {"qwen"}


MESSAGES: list[Any] = [
    pytest.param({"content": {"name": 1}}, {"content": '{"name":1}'}, id="an object, asked for as JSON"),
    pytest.param({"content": 5}, {"content": "5"}, id="a number"),
    pytest.param({"role": "model", "content": "hi"}, {"content": "hi"}, id="a role of another API"),
    pytest.param({"content": None, "tool_calls": call("c")}, {"content": None, "tool_calls": [call("c")]},
                 id="a call without a list around it"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "told"), MESSAGES)
async def test_a_message_is_an_assistants_in_text_and_a_list_of_calls(message: Json, told: Json) -> None:
    async with in_front_of([saying(message, "tool_calls" if "tool_calls" in message else "stop")]) as field:
        choice = (await field.ask(tools=[WEATHER])).json["choices"][0]
        streamed = heard(await field.ask(tools=[WEATHER], stream=True))

    text = choice["message"]["content"]
    said = {**choice["message"], "content": text if text is None else text.replace(" ", "")}
    assert said == {"role": "assistant", **told}
    assert choice["finish_reason"] == streamed.finish[0] == ("tool_calls" if "tool_calls" in told else "stop")
    assert streamed.content == (told["content"] or "")
    assert len(streamed.calls) == len(told.get("tool_calls", ()))


@pytest.mark.parametrize(("piece", "text"), [({"content": {"a": 1}}, '{"a": 1}'), ({"content": 5}, "5")])
async def test_a_piece_of_a_stream_is_a_text(piece: Json, text: str) -> None:
    async with in_front_of(stream(delta(role="model", **piece), STOP, DONE)) as field:
        answer = await field.ask(stream=True)

    assert heard(answer).content == text
    assert payloads(answer.body)[0]["choices"][0]["delta"]["role"] == "assistant"


def text_piece(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return event({"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]})


async def test_a_chat_where_a_text_was_asked_for_is_that_text() -> None:
    chats = stream(ROLE, delta(content="hel"), delta(content="lo"), STOP, DONE)
    for streamed, script in ((False, [saying({"content": "hello"})]), (True, chats)):
        async with in_front_of(script) as field:
            answer = await field.gateway.post("/v1/completions", {"model": "m", "prompt": "Hi", "stream": streamed})

        told = payloads(answer.body)[:-1] if streamed else [answer.json]
        assert {one["object"] for one in told} == {"text_completion"}
        assert "".join(choice["text"] for one in told for choice in one["choices"]) == "hello"


async def test_a_text_where_a_chat_was_asked_for_is_its_message() -> None:
    texts = stream(text_piece("hel"), text_piece("lo"), text_piece("", "stop"), DONE)
    async with in_front_of(texts) as field:
        found = heard(await field.ask(stream=True))
    assert (found.content, found.finish, found.done) == ("hello", {0: "stop"}, True)

    async with in_front_of([saying({}, choices=[{"index": 0, "text": "hello", "finish_reason": "stop"}])]) as field:
        (choice,) = (await field.ask()).json["choices"]
    assert choice == {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}


VECTORS: list[Any] = [
    pytest.param({"usage": {"prompt_tokens": 3}}, {"usage": {"prompt_tokens": 3, "total_tokens": 3}}, id="no total"),
    pytest.param({"usage": {"total_tokens": 3.0}}, {"usage": {"prompt_tokens": 3, "total_tokens": 3}}, id="a total"),
    pytest.param({"model": ""}, {"model": "bge"}, id="no name"),
    pytest.param({"data": [{"object": "embedding", "index": 0, "embedding": [[0.5, 1.0]]}]}, {}, id="a list of one"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "told"), VECTORS)
async def test_a_list_of_vectors_reads_like_openais(given: Json, told: Json) -> None:
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}]
    usual = {"object": "list", "model": "bge", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    async with in_front_of([wire_answer(json.dumps({**usual, **given}).encode())], model="bge") as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": "hi"})

    assert answer.json == {**usual, **told}


async def test_a_vector_with_a_hole_is_none() -> None:
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, None]}]
    async with in_front_of([wire_answer(json.dumps({"object": "list", "data": data}).encode())]) as field:
        answer = await field.gateway.post("/v1/embeddings", {"model": "m", "input": "hi"})

    assert answer.status == 502


SENSELESS: list[Any] = [
    pytest.param({"created": "9" * 400}, {}, id="a time beyond all bounds"),
    pytest.param({"created": 1e300}, {}, id="a time that is no time"),
    pytest.param({}, {"finish_reason": {"type": "stop"}}, id="an object for a reason"),
    pytest.param({}, {"finish_reason": ["stop"]}, id="a list of reasons"),
    pytest.param({"usage": {**COUNTS, "prompt_tokens_details": "none"}}, {}, id="details that are a text"),
]


@pytest.mark.parametrize("choices", [1, 2])
@pytest.mark.parametrize(("around", "within"), SENSELESS)
async def test_a_member_that_makes_no_sense_is_no_error_of_the_gateway(
    around: Json, within: Json, choices: int
) -> None:
    said = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop", **within}
    one_at_a_time = {"params": {"n": {"support": "limited", "max": 1, "patch": "fan_out"}}}
    async with in_front_of([saying({}, choices=[said], **around)], overrides=one_at_a_time) as field:
        answer = await field.ask(n=choices)

    if answer.status == 200:
        assert [choice["message"]["content"] for choice in answer.json["choices"]] == ["hi"] * choices
        assert answer.json["created"] < 10**11
    else:
        assert (answer.status, answer.error["code"]) == (502, "upstream_error"), answer.body
