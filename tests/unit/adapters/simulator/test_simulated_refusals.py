"""What else a simulated provider refuses as its file says: messages, models, keys, paths, prompts that are too long."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.registry import load_spec
from adapters.simulator.wire import Request
from adapters.types import Operation
from tests.unit.adapters.simulator.asking import CHATS, PROVIDERS, ask, hear, key_headers, simulator, user
from tests.unit.adapters.simulator.refusals import assert_refused


@pytest.mark.parametrize("provider", CHATS)
def test_a_field_nobody_knows_inside_a_message_does_what_the_file_says(provider: str) -> None:
    sim = simulator(provider)
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}, "index": 0}
    past = [user("Look."), {"role": "assistant", "content": "", "tool_calls": [call]}]
    heard = ask(sim, messages=[*past, {"role": "tool", "tool_call_id": "a", "content": "blue"}])

    if sim.spec.transport.unknown_body_fields.nested:
        assert_refused(sim, heard, sim.spec.transport.unknown_body_fields.status)
        assert "messages[1].tool_calls[0].index" in heard.raw.decode()
    else:
        assert heard.status == 200, heard.raw


@pytest.mark.parametrize("message", [{"role": "oracle", "content": "hm"}, {"role": "user"}], ids=str)
@pytest.mark.parametrize("provider", CHATS)
def test_a_message_that_is_none_is_refused_where_messages_are_checked(provider: str, message: dict[str, Any]) -> None:
    sim = simulator(provider)
    heard = ask(sim, messages=[user("hi"), message])

    if sim.spec.messages.unchecked:
        assert heard.status == 200
    else:
        assert_refused(sim, heard)


def test_what_is_refused_like_a_failure_is_known_by_its_words() -> None:
    heard = ask(simulator("llama_cpp_python"), messages=[{"role": "oracle", "content": "hm"}])

    assert heard.status == 500
    assert "validation error" in heard.json["error"]["message"]


@pytest.mark.parametrize("provider", [name for name in CHATS if load_spec(name).models])
def test_an_unknown_and_a_retired_model_are_not_found(provider: str) -> None:
    sim = simulator(provider)
    gone = [model.id for model in sim.spec.models if model.status == "retired"]
    for name in ["no/such-model", *gone] if sim.spec.hosted else gone:
        assert_refused(sim, ask(sim, model=name), 404)


@pytest.mark.parametrize("provider", [name for name in CHATS if not load_spec(name).transport.auth.optional])
def test_a_wrong_or_missing_key_is_refused(provider: str) -> None:
    sim = simulator(provider)

    assert_refused(sim, ask(sim, headers={sim.spec.transport.auth.header.lower(): "Bearer wrong"}), 401)
    path = f"{sim.base_path}{sim.spec.endpoints[Operation.CHAT].path}"
    assert_refused(sim, hear(sim.handle(Request("POST", path, {}, b"{}"))), 401)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_path_is_not_found_in_its_own_envelope(provider: str) -> None:
    sim = simulator(provider)

    assert_refused(sim, hear(sim.handle(Request("GET", f"{sim.base_path}/nowhere", key_headers(sim)))), 404)


@pytest.mark.parametrize("provider", CHATS)
def test_a_prompt_that_does_not_fit_is_refused_or_cut_as_the_file_says(provider: str) -> None:
    sim = simulator(provider, context_window=64)
    heard = ask(sim, messages=[user("word " * 100)])

    if sim.spec.context.overflow == "error":
        case = next((one for one in sim.spec.errors.cases if one.case == "context_overflow"), None)
        assert_refused(sim, heard, *(case.status if case is not None else (400,)))
    else:
        assert heard.status == 200
        assert heard.json["usage"]["prompt_tokens"] == 64


def test_a_provider_that_cuts_silently_refuses_when_asked_to() -> None:
    sim = simulator("fireworks", context_window=64)
    long = [user("word " * 100)]

    assert ask(sim, messages=long).choice["finish_reason"] == "length"
    assert ask(sim, messages=long, **sim.spec.context.ask_for_error).status == 400


def test_more_tokens_than_the_model_writes_are_refused() -> None:
    sim = simulator("groq")

    assert ask(sim, max_completion_tokens=65536).status == 200
    assert_refused(sim, ask(sim, max_completion_tokens=65537), 400)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "content": "hi", "name": "ann"}, "messages[1].name"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "messages[1].content[0].type"),
        ({"role": "assistant", "content": "hi", "reasoning_content": "hm"}, "messages[1].reasoning_content"),
        ({"role": "assistant", "content": "hi", "function_call": None}, "messages[1].function_call"),
        ({"role": "user", "content": "hi", "cache_control": {}}, "messages[1].cache_control"),
        ({"role": "user", "content": None}, "messages[1]"),
    ],
)
def test_a_message_is_refused_with_its_place(message: dict[str, Any], place: str) -> None:
    heard = ask(simulator("groq"), messages=[user("hi"), message])

    assert heard.status == 400
    assert place in heard.json["error"]["message"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "tool", "tool_call_id": "a", "content": "blue"}],
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}],
            }
        ],
    ],
)
def test_calls_and_their_results_have_to_belong_together(messages: list[dict[str, Any]]) -> None:
    heard = ask(simulator("cerebras"), messages=[user("hi"), *messages])

    assert (heard.status, heard.json["code"]) == (400, "wrong_api_format")


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("vllm", "maximum context length is 64 tokens. However, your prompt contains 105 input tokens"),
        ("sglang", "The input (105 tokens) is longer than the model's context length (64 tokens)"),
        (
            "lm_studio",
            "However, the model is loaded with context length of only 64 tokens",
        ),
        ("tgi", "`inputs` tokens + `max_new_tokens` must be <= 64"),
    ],
)
def test_the_words_about_a_full_context_have_the_numbers_in_their_places(provider: str, words: str) -> None:
    heard = ask(simulator(provider, context_window=64), messages=[user("word " * 100)])

    assert words in heard.raw.decode()
