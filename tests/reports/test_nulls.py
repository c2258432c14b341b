"""Reports about parameters that are null: some clients write out all there are, and engines refuse them."""

from __future__ import annotations

import json

import pytest

from tests.fakes.scripted_server import RecordedRequest, Script, answer
from tests.reports.field import USER, Json, hello, in_front_of, strict

UNSET: Json = dict.fromkeys((
    "temperature", "top_p", "max_tokens", "stop", "n", "seed", "tools", "tool_choice", "response_format", "logit_bias",
    "user", "stream", "stream_options", "functions", "function_call", "parallel_tool_calls", "min_p", "ignore_eos",
))  # fmt: skip


def no_nulls(body: Json) -> str | None:
    """llama.cpp's words."""
    name = next((name for name, value in body.items() if value is None), None)
    return f"Field '{name}': type must be number, but is null" if name else None


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "llama_cpp_server", "groq", "ollama"])
async def test_parameters_without_a_value_are_not_sent(provider: str) -> None:
    """ggml-org/llama.cpp#25515, and theopenco/llmgateway#596 from the other side."""
    async with in_front_of(strict(no_nulls), provider) as field:
        answered = await field.ask(**UNSET)

        assert answered.status == 200, answered.body
        (body,) = field.sent
        assert None not in body.values()
        assert body["messages"] == [USER]


def _vectors_or_text(request: RecordedRequest) -> Script:
    body = json.loads(request.body)
    told = no_nulls(body)
    if told is not None:
        return [answer(json.dumps({"error": {"message": told}}).encode(), status=400)]
    choice = {"index": 0, "text": "hello", "finish_reason": "stop", "logprobs": None}
    vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    told_of = {"object": "list", "data": [vector]} if "input" in body else {"choices": [choice]}
    return [answer(json.dumps({"id": "x", "created": 1, "model": "m", "usage": usage, **told_of}).encode())]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "hi", "max_tokens": None, "suffix": None, "echo": None, "best_of": None}),
        ("/v1/embeddings", {"input": "hi", "encoding_format": None, "dimensions": None, "user": None}),
    ],
)
async def test_other_endpoints_send_none_either(path: str, body: Json) -> None:
    async with in_front_of(_vectors_or_text) as field:
        answered = await field.gateway.post(path, {"model": "m", **body})

        assert answered.status == 200, answered.body
        assert None not in field.sent[0].values()


async def test_a_null_among_the_parameters_of_an_engine_is_not_sent() -> None:
    """The members of extra_body are parameters like all others."""
    async with in_front_of(hello, "vllm") as field:
        answered = await field.ask(extra_body={"top_k": None, "min_p": 0.1})

        assert answered.status == 200, answered.body
        assert (field.sent[0].get("min_p"), "top_k" in field.sent[0]) == (0.1, False)


async def test_a_format_is_sent_without_its_nulls_and_the_schema_as_it_is() -> None:
    schema = {"type": "object", "properties": {"age": {"enum": [1, None], "default": None}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "strict": None, "schema": schema}, "extra": None}
    async with in_front_of() as field:
        answered = await field.ask(response_format=wanted)

        assert answered.status == 200, answered.body
        sent = field.sent[0]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
