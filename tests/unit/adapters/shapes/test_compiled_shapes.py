"""Which shapes the targets of each provider get from its file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.registry import load_spec
from adapters.shapes.base import Shape
from adapters.shapes.call_missing import CallMissing
from adapters.shapes.compile import compile_rescues, compile_shapes
from adapters.shapes.salvage import SalvageCall
from adapters.types import FailureKind, Operation
from tests.fakes.bodies import body_of

TOOL = {"type": "function", "function": {"name": "look"}}
AS_JSON = {"type": "json_object"}
AS_SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
BY_NAME = {"type": "function", "function": {"name": "look"}}
GPT_OSS, LLAMA = "openai/gpt-oss-120b", "llama-3.3-70b-versatile"


def shapes_of(provider: str, model: str = "", offers: Any = None, **overrides: Any) -> tuple[Shape, ...]:
    return compile_shapes(load_spec(provider).with_overrides(overrides), provider, offers, model)


def at_work(shapes: tuple[Shape, ...], *, stream: bool = False, **members: Any) -> str:
    """The name of the first shape that a request is for, or nothing."""
    body = body_of(messages=[{"role": "user", "content": "x"}], stream=stream, **members)
    for shape in shapes:
        if not shape.triggers.isdisjoint(body) and shape.applies(Draft(dict(body), Operation.CHAT, stream)):
            return type(shape).__name__
    return ""


@pytest.mark.parametrize(
    ("provider", "model", "request_", "shape"),
    [
        ("groq", LLAMA, {"n": 2}, "FanOut"),
        ("groq", LLAMA, {"n": 1}, ""),
        ("groq", LLAMA, {"tools": [TOOL], "response_format": AS_JSON}, "TwoPhase"),
        ("groq", LLAMA, {"tools": [TOOL], "response_format": AS_SCHEMA}, "TwoPhase"),
        ("groq", LLAMA, {"response_format": AS_SCHEMA}, "EmulateSchema"),
        ("groq", LLAMA, {"response_format": AS_JSON}, ""),
        ("groq", GPT_OSS, {"response_format": AS_SCHEMA}, ""),
        ("groq", GPT_OSS, {"response_format": AS_SCHEMA, "stream": True}, "FakeStream"),
        ("groq", GPT_OSS, {"response_format": AS_JSON, "stream": True}, ""),
        ("groq", GPT_OSS, {"tools": [TOOL], "tool_choice": BY_NAME}, ""),
        ("cerebras", "gpt-oss-120b", {"n": 2}, "FanOut"),
        ("cerebras", "gpt-oss-120b", {"tools": [TOOL], "response_format": AS_SCHEMA}, "TwoPhase"),
        ("cerebras", "gpt-oss-120b", {"tools": [TOOL], "tool_choice": "required"}, "EmulateForcedTool"),
        ("cerebras", "gpt-oss-120b", {"tools": [TOOL], "tool_choice": BY_NAME}, "EmulateForcedTool"),
        ("cerebras", "gpt-oss-120b", {"tools": [TOOL], "tool_choice": "auto"}, ""),
        ("cerebras", "qwen-3.8-27b", {"tools": [TOOL], "tool_choice": BY_NAME}, ""),
        ("cerebras", "gemma-4-31b", {"response_format": AS_JSON}, "EmulateSchema"),
        ("cerebras", "gpt-oss-120b", {"response_format": AS_SCHEMA}, ""),
        ("cerebras", "gpt-oss-120b", {"response_format": AS_SCHEMA, "stream": True}, ""),
        ("together", GPT_OSS, {"tools": [TOOL], "tool_choice": BY_NAME}, "EmulateForcedTool"),
        ("together", GPT_OSS, {"response_format": AS_SCHEMA}, "EmulateSchema"),
        ("together", GPT_OSS, {"n": 2}, ""),
        ("together", GPT_OSS, {"n": 2, "response_format": AS_SCHEMA}, "FanOut"),
        ("together", GPT_OSS, {"tools": [TOOL], "response_format": AS_JSON}, ""),
        ("fireworks", GPT_OSS, {"tools": [TOOL], "response_format": AS_JSON}, "TwoPhase"),
        ("vllm", "", {"n": 4, "tools": [TOOL], "response_format": AS_SCHEMA, "tool_choice": BY_NAME}, ""),
        ("ollama", "", {"n": 2}, "FanOut"),
        ("ollama", "", {"tools": [TOOL], "tool_choice": "required"}, "EmulateForcedTool"),
        ("ollama", "", {"response_format": AS_SCHEMA}, "EmulateSchema"),
        ("mlx_lm", "", {"response_format": AS_JSON}, "EmulateSchema"),
        ("tgi", "", {"tools": [TOOL], "response_format": AS_JSON}, "TwoPhase"),
        ("triton", "", {"n": 2}, "FanOut"),
        ("llama_cpp_server", "", {"tools": [TOOL], "grammar": "root ::= x"}, "TwoPhase"),
        ("openai_compatible", "", {"n": 3, "tools": [TOOL], "response_format": AS_SCHEMA, "stream": True}, ""),
    ],
)
def test_a_shape_is_at_work_where_the_file_says_so(
    provider: str, model: str, request_: dict[str, Any], shape: str
) -> None:
    assert at_work(shapes_of(provider, model), **request_) == shape


@pytest.mark.parametrize(
    ("provider", "model", "conflict"),
    [
        ("groq", LLAMA, "a schema, which is emulated for this model"),
        ("lemonade", "", "log probabilities, which it does not have"),
    ],
)
def test_nothing_is_streamed_otherwise_for_a_conflict_that_cannot_be(provider: str, model: str, conflict: str) -> None:
    assert not [shape for shape in shapes_of(provider, model) if type(shape).__name__ == "FakeStream"]


@pytest.mark.parametrize(("model", "expected"), [("glm-5.2", True), ("olmoe-1b-7b", False)])
def test_a_call_that_did_not_come_is_asked_for_again_only_where_there_are_tools(model: str, expected: bool) -> None:
    spec = load_spec("colibri")
    rescues = compile_rescues(spec, compile_shapes(spec, "colibri", model=model), model=model)

    assert any(isinstance(rescue, CallMissing) for rescue in rescues) is expected


def test_a_target_that_lacks_nothing_has_no_shapes() -> None:
    assert shapes_of("openai_compatible") == ()


def test_a_model_that_may_have_tools_is_asked_at_the_time_of_the_request() -> None:
    told: dict[str, bool | None] = {"tools": True}
    shapes = shapes_of("local", "own", told.get)

    assert at_work(shapes, tools=[TOOL]) == ""
    told["tools"] = False
    assert at_work(shapes, tools=[TOOL]) == "EmulateTools"
    told["tools"] = None
    with pytest.raises(ProviderError) as caught:
        at_work(shapes, tools=[TOOL])
    assert caught.value.kind is FailureKind.ENGINE_DOWN


def test_images_are_fetched_for_engines_that_want_bytes() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    body = body_of(messages=[{"role": "user", "content": [image]}])
    draft = Draft(body, Operation.CHAT, False)

    assert [type(shape).__name__ for shape in shapes_of("ollama") if shape.applies(draft)] == ["FetchImages"]


def test_a_combination_that_may_be_taken_waits_for_its_refusal() -> None:
    shapes = shapes_of("together", GPT_OSS)
    rescue, *_ = compile_rescues(load_spec("together"), shapes)
    draft = Draft(body_of(messages=[], tools=[TOOL], response_format=AS_JSON), Operation.CHAT, False)
    refused = ProviderError(FailureKind.BAD_REQUEST, "no", status=400)
    overloaded = ProviderError(FailureKind.OVERLOADED, "later", status=503)

    assert rescue.rescued(draft, overloaded) is None
    shape = rescue.rescued(draft, refused)
    assert shape is not None
    assert not shape.applies(draft)
    rescue.worked()
    assert shape.applies(draft)
    assert rescue.rescued(draft, refused) is shape, "one that was on its way before is helped too"


def test_groq_has_its_tool_calls_salvaged() -> None:
    spec = load_spec("groq")

    assert any(isinstance(rescue, SalvageCall) for rescue in compile_rescues(spec, compile_shapes(spec, "groq")))


def test_a_schema_with_keywords_the_provider_passes_over_is_checked() -> None:
    shapes = shapes_of("fireworks", GPT_OSS)
    short = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "maxLength": 3}}}

    assert at_work(shapes, response_format=short) == "EmulateSchema"
    assert at_work(shapes, response_format=AS_SCHEMA) == ""


def test_the_instruction_names_the_schema_as_the_client_wrote_it() -> None:
    (shape,) = [shape for shape in shapes_of("groq", LLAMA) if type(shape).__name__ == "EmulateSchema"]
    first = shape.first(body_of(messages=[{"role": "user", "content": "x"}], response_format=AS_SCHEMA))

    assert json.loads(bytes(first["response_format"])) == AS_JSON
    assert '{"type":"object"}' in json.loads(bytes(first["messages"]))[0]["content"]
