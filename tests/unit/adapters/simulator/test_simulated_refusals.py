"""A simulated provider refuses what its file says is refused, with its status, in its envelope."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.failures import read_error
from adapters.registry import load_spec
from adapters.simulator.engine import Simulator
from adapters.simulator.wire import Request
from adapters.spec import Support
from adapters.types import Operation
from adapters.vocabulary import Patch
from tests.unit.adapters.simulator.asking import CHATS, PROVIDERS, Heard, ask, hear, key_headers, simulator, tool, user

SCHEMA = {
    "type": "object",
    "properties": {"sky": {"type": "string"}},
    "required": ["sky"],
    "additionalProperties": False,
}
USES: dict[str, dict[str, Any]] = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "logit_bias": {"logit_bias": {"50256": -100}},
    "logprobs": {"logprobs": True},
    "max_completion_tokens": {"max_completion_tokens": 5},
    "max_tokens": {"max_tokens": 5},
    "metadata": {"metadata": {"a": "b"}},
    "modalities": {"modalities": ["text", "audio"]},
    "n": {"n": 2},
    "parallel_tool_calls": {"tools": [tool("look")], "parallel_tool_calls": False},
    "prediction": {"prediction": {"type": "content", "content": "Hello"}},
    "presence_penalty": {"presence_penalty": 0.5},
    "prompt_cache_key": {"prompt_cache_key": "k"},
    "response_format.json_object": {"response_format": {"type": "json_object"}},
    "response_format.json_schema": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}}
    },
    "response_format.text": {"response_format": {"type": "text"}},
    "safety_identifier": {"safety_identifier": "s"},
    "seed": {"seed": 7},
    "service_tier": {"service_tier": "auto"},
    "stop": {"stop": ["END"]},
    "store": {"store": True},
    "stream": {"stream": True},
    "stream_options.include_usage": {"stream": True, "stream_options": {"include_usage": True}},
    "temperature": {"temperature": 0.5},
    "tool_choice": {"tools": [tool("look")], "tool_choice": "required"},
    "tools": {"tools": [tool("look")]},
    "top_logprobs": {"logprobs": True, "top_logprobs": 2},
    "top_p": {"top_p": 0.5},
    "user": {"user": "u"},
    "verbosity": {"verbosity": "low"},
    "web_search_options": {"web_search_options": {}},
}
REFUSED = (Support.REJECTED, Support.UNKNOWN)
TAKEN = (Support.NATIVE, Support.IGNORED)


def params(*supports: Support) -> list[tuple[str, str]]:
    return [
        (provider, name)
        for provider in CHATS
        for name, rule in load_spec(provider).params.items()
        if rule.support in supports and name in USES
    ]


def assert_refused(sim: Simulator, heard: Heard, *statuses: int | None) -> None:
    fields = read_error(heard.raw)

    assert heard.status in [status for status in statuses if status is not None] or not any(statuses), heard.raw
    assert heard.status in (400, 401, 404, 413, 422, *_validation_statuses(sim))
    assert fields is not None, heard.raw
    assert fields.message


def _validation_statuses(sim: Simulator) -> tuple[int, ...]:
    return tuple(status for case in sim.spec.errors.cases if case.case == "validation" for status in case.status)


@pytest.mark.parametrize(("provider", "name"), params(*REFUSED))
def test_what_is_rejected_is_refused(provider: str, name: str) -> None:
    sim = simulator(provider)
    rule = sim.spec.params[name]
    heard = ask(sim, **USES[name])

    assert_refused(sim, heard, rule.status or sim.spec.transport.unknown_body_fields.status)


@pytest.mark.parametrize(("provider", "name"), params(*TAKEN))
def test_what_is_taken_or_ignored_is_answered(provider: str, name: str) -> None:
    sim = simulator(provider)
    using = USES[name]
    if name in ("tool_choice", "parallel_tool_calls") and not _takes(sim, "tools"):
        pytest.skip("needs tools, which it has not")
    if name == "top_logprobs" and sim.spec.params["logprobs"].form is not None:
        using = {"top_logprobs": 2}
    heard = [ask(sim, model=model, **using) for model in sim.models.names()]

    assert 200 in [one.status for one in heard], heard[0].raw  # some models lack what the provider has


def _takes(sim: Simulator, name: str) -> bool:
    return sim.spec.params[name].support not in REFUSED


@pytest.mark.parametrize("provider", CHATS)
def test_a_field_nobody_knows_does_what_the_file_says(provider: str) -> None:
    sim = simulator(provider)
    facts = sim.spec.transport.unknown_body_fields
    heard = ask(sim, no_such_field=1)

    if facts.only_known:
        assert_refused(sim, heard, facts.status)
        assert "no_such_field" in heard.raw.decode()
    else:
        assert heard.status == 200


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


BOUNDS = [
    (provider, name, value)
    for provider in CHATS
    for name, rule in load_spec(provider).params.items()
    if rule.support is Support.LIMITED and name not in ("tools", "stop", "logprobs")
    for value in ([rule.min - 1] if rule.min is not None else []) + ([rule.max + 1] if rule.max is not None else [])
]


@pytest.mark.parametrize(("provider", "name", "value"), BOUNDS)
def test_a_value_out_of_bounds_is_refused(provider: str, name: str, value: float) -> None:
    sim = simulator(provider)
    asked: dict[str, Any] = {name: int(value) if value == int(value) else value}
    if name == "top_logprobs":
        asked["logprobs"] = True
    heard = ask(sim, **asked)

    assert_refused(sim, heard, sim.spec.params[name].status)


@pytest.mark.parametrize("provider", [name for name in CHATS if load_spec(name).params["stop"].max_items])
def test_more_stops_than_it_takes_are_refused(provider: str) -> None:
    sim = simulator(provider)
    most = sim.spec.params["stop"].max_items or 0

    assert ask(sim, stop=[f"s{number}" for number in range(most)]).status == 200
    assert_refused(sim, ask(sim, stop=[f"s{number}" for number in range(most + 1)]), sim.spec.params["stop"].status)


TWO_PHASED = [
    provider
    for provider in CHATS
    for conflict in load_spec(provider).conflicts
    if conflict.patch is Patch.TWO_PHASE and conflict.only_after is None and "tools" in conflict.when
    if any(word.startswith("response_format") for word in conflict.when)
]


@pytest.mark.parametrize("provider", sorted(set(TWO_PHASED)))
def test_tools_and_a_schema_do_not_go_together(provider: str) -> None:
    sim = simulator(provider)
    both = {**USES["tools"], **USES["response_format.json_schema"]}

    assert_refused(sim, ask(sim, **both), *(c.result for c in sim.spec.conflicts if isinstance(c.result, int)))
    assert ask(sim, **USES["tools"]).status == 200


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


def test_a_changed_fact_changes_the_answer() -> None:
    changed = {"params": {"logit_bias": {"support": "native"}, "user": {"support": "rejected", "status": 422}}}
    sim = simulator("groq", changed)

    assert ask(sim, logit_bias={"1": 1}).status == 200
    assert ask(sim, user="u").status == 422


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
