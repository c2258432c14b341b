"""What a simulated model says follows from the request alone, and from what its provider honours."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest

from adapters.registry import load_spec
from adapters.spec import Support
from adapters.types import Operation
from adapters.vocabulary import FinishReason, LogprobsShape
from tests.unit.adapters.simulator.asking import CHATS, ask, simulator, tool, user

PLAIN = "openai_compatible"
SKY = {"type": "object", "properties": {"sky": {"enum": ["blue", "grey"]}}, "required": ["sky"]}


def schema_format(schema: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema, **members}}


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("Say exactly: the sea, 'calm'.", "the sea, 'calm'."),
        ("Say exactly: one\nand no more", "one"),
        ("Count to 5", "1 2 3 4 5"),
        ("What is the weather?", "Hello from the simulated model."),
    ],
)
def test_an_instruction_is_followed_to_the_letter(prompt: str, text: str) -> None:
    assert ask(simulator(PLAIN), messages=[user(prompt)]).text == text


def test_the_last_message_with_an_instruction_counts() -> None:
    messages = [user("Say exactly: one"), {"role": "assistant", "content": "one"}, user("Say exactly: two")]

    assert ask(simulator(PLAIN), messages=messages).text == "two"


@pytest.mark.parametrize("provider", CHATS)
def test_the_same_request_gets_the_same_answer(provider: str) -> None:
    first, second = (ask(simulator(provider), messages=[user("Count to 9")]).raw for _ in range(2))

    assert first == second


def test_a_call_is_made_as_told_and_its_result_repeated() -> None:
    sim, tools = simulator(PLAIN), [tool("look", where="string"), tool("listen")]
    asking = user('Call tool look with {"where": "up"} and Call tool listen with {}')
    calls = ask(sim, messages=[asking], tools=tools).choice["message"]["tool_calls"]

    assert [(call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        ("look", '{"where": "up"}'),
        ("listen", "{}"),
    ]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in zip(calls, "AB", strict=True)
    ]
    past = [asking, {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    assert ask(sim, messages=past, tools=tools).text == "The tool said: A | B"


def test_a_call_of_a_tool_that_is_not_offered_is_not_made() -> None:
    heard = ask(simulator(PLAIN), messages=[user("Call tool look with {}")], tools=[tool("listen")])

    assert heard.choice["finish_reason"] == "stop"
    assert "tool_calls" not in heard.choice["message"]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, ["look", "listen"]),
        ({"parallel_tool_calls": False}, ["look"]),
        ({"tool_choice": "none"}, []),
        ({"tool_choice": {"type": "function", "function": {"name": "listen"}}}, ["listen"]),
    ],
)
def test_choices_about_tools_are_honoured(asked: dict[str, Any], names: list[str]) -> None:
    prompt = user("Call tool look with {} and Call tool listen with {}")
    heard = ask(simulator(PLAIN), messages=[prompt], tools=[tool("look"), tool("listen")], **asked)
    calls = heard.choice["message"].get("tool_calls", [])

    assert [call["function"]["name"] for call in calls] == names


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_forced_call_has_the_smallest_arguments(choice: Any) -> None:
    heard = ask(simulator(PLAIN), tools=[tool("look", where="string", far="integer")], tool_choice=choice)

    assert heard.choice["finish_reason"] == "tool_calls"
    assert json.loads(heard.choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"where": "x", "far": 1}


IGNORE = [
    (provider, name)
    for provider in CHATS
    for name, rule in load_spec(provider).params.items()
    if rule.support is Support.IGNORED
]


@pytest.mark.parametrize("provider", [provider for provider, name in IGNORE if name == "n"])
def test_where_n_is_ignored_one_choice_comes(provider: str) -> None:
    assert len(ask(simulator(provider), n=3).json["choices"]) == 1


@pytest.mark.parametrize("provider", [provider for provider, name in IGNORE if name == "parallel_tool_calls"])
def test_where_parallel_tool_calls_is_ignored_several_come(provider: str) -> None:
    prompt = user("Call tool look with {} and Call tool listen with {}")
    heard = ask(simulator(provider), messages=[prompt], tools=[tool("look"), tool("listen")], parallel_tool_calls=False)

    assert len(heard.choice["message"]["tool_calls"]) == 2


@pytest.mark.parametrize("provider", [provider for provider, name in IGNORE if name == "tool_choice"])
def test_where_tool_choice_is_ignored_none_is_forced(provider: str) -> None:
    heard = ask(simulator(provider), tools=[tool("look")], tool_choice="required")

    assert not heard.choice["message"].get("tool_calls")


@pytest.mark.parametrize("provider", [provider for provider, name in IGNORE if name == "response_format.json_schema"])
def test_where_a_schema_is_ignored_the_text_is_free(provider: str) -> None:
    heard = ask(simulator(provider), messages=[user("Say exactly: no")], response_format=schema_format(SKY))

    assert heard.text == "no"


def test_where_logprobs_are_ignored_none_come() -> None:
    sim = simulator(PLAIN, {"params": {"logprobs": {"support": "ignored"}}})

    assert ask(sim, logprobs=True).choice["logprobs"] is None


def test_a_schema_is_honoured_and_so_is_one_in_the_prompt() -> None:
    sim = simulator(PLAIN)
    in_prompt = [{"role": "system", "content": f"Answer in JSON like this: {json.dumps(SKY)}"}, user("How is the sky?")]

    assert json.loads(ask(sim, response_format=schema_format(SKY)).text) == {"sky": "blue"}
    assert json.loads(ask(sim, messages=in_prompt).text) == {"sky": "blue"}
    assert isinstance(json.loads(ask(sim, response_format={"type": "json_object"}).text), dict)


def test_text_ends_at_a_stop_or_at_the_limit() -> None:
    sim, count = simulator(PLAIN), [user("Count to 9")]

    assert ask(sim, messages=count, stop=[" 7", " 4"]).text == "1 2 3"
    short = ask(sim, messages=count, max_tokens=2)
    assert (short.text, short.choice["finish_reason"], short.json["usage"]["completion_tokens"]) == ("1 2", "length", 2)


@pytest.mark.parametrize("provider", CHATS)
def test_a_finish_reason_is_one_its_file_knows(provider: str) -> None:
    facts = load_spec(provider).finish_reason
    reason = ask(simulator(provider)).choice["finish_reason"]

    assert reason in facts.values
    assert facts.nonstandard.get(reason, reason) == FinishReason.STOP


def test_choices_come_as_many_as_asked_and_all_are_counted() -> None:
    answer = ask(simulator(PLAIN), messages=[user("Count to 4")], n=3).json

    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 12


def test_a_seed_shows_in_the_fingerprint() -> None:
    sim = simulator(PLAIN)

    assert ask(sim, seed=7).json["system_fingerprint"] == ask(sim, seed=7).json["system_fingerprint"]
    assert ask(sim, seed=7).json["system_fingerprint"] != ask(sim, seed=8).json["system_fingerprint"]


@pytest.mark.parametrize("provider", ["openai_compatible", "together", "mlx_lm"])
def test_logprobs_come_in_the_providers_own_shape(provider: str) -> None:
    sim = simulator(provider)
    rule = sim.spec.params["logprobs"]
    asked: dict[str, Any] = {"logprobs": 2} if rule.form is not None else {"logprobs": True, "top_logprobs": 2}
    logprobs = ask(sim, messages=[user("Say exactly: hi there")], **asked).choice["logprobs"]

    match rule.response_shape:
        case LogprobsShape.ARRAYS:
            assert logprobs["tokens"] == ["hi", " there"]
            assert [len(top) for top in logprobs["top_logprobs"]] == [2, 2]
        case LogprobsShape.CONTENT_IDS:
            assert [sorted(row) for row in logprobs["content"]] == [["id", "logprob", "token", "top_logprobs"]] * 2
        case _:
            assert [row["token"] for row in logprobs["content"]] == ["hi", " there"]
            assert [len(row["top_logprobs"]) for row in logprobs["content"]] == [2, 2]


@pytest.mark.parametrize("provider", ["groq", "fireworks"])
def test_reasoning_stands_in_the_providers_own_field(provider: str) -> None:
    sim = simulator(provider)
    field = (sim.spec.reasoning.out_field or "").removeprefix("message.")
    answer = ask(sim).json

    assert answer["choices"][0]["message"][field] == "Let me think about it."
    assert "<think>" not in answer["choices"][0]["message"]["content"]


def test_reasoning_stands_between_tags_where_the_file_says_so() -> None:
    sim = simulator("groq")
    qwen = next(model.id for model in sim.spec.models if "qwen" in model.id)

    assert ask(sim, model=qwen).text == "<think>\nLet me think about it.\n</think>\n\nHello from the simulated model."
    assert ask(sim, model=qwen, reasoning_effort="none").text == "Hello from the simulated model."
    assert ask(sim, model=qwen, reasoning_format="hidden").text == "Hello from the simulated model."


def test_values_of_the_providers_own_come_back() -> None:
    assert ask(simulator("groq"), service_tier="flex").json["service_tier"] == "on_demand"
    assert ask(simulator("groq"), service_tier="performance").json["service_tier"] == "performance"


@pytest.mark.parametrize("provider", CHATS)
def test_limits_stand_in_the_headers_the_file_names(provider: str) -> None:
    facts = load_spec(provider).rate_limit_headers
    headers = ask(simulator(provider)).headers
    named = {name for limit in facts.limits for name in (limit.limit, limit.remaining, limit.reset) if name is not None}

    assert named <= set(headers)


def test_prompts_are_completed_each_for_itself() -> None:
    sim = simulator(PLAIN)
    answer = ask(sim, Operation.COMPLETIONS, prompt=["Say exactly: one", "Count to 3"], n=2).json

    assert [choice["text"] for choice in answer["choices"]] == ["one", "one", "1 2 3", "1 2 3"]
    assert answer["object"] == "text_completion"


def test_a_completion_echoes_and_tells_logprobs_in_arrays() -> None:
    choice = ask(simulator(PLAIN), Operation.COMPLETIONS, prompt="Say exactly: hi", echo=True, logprobs=1).choice

    assert choice["text"] == "Say exactly: hihi"
    assert choice["logprobs"]["tokens"][-1] == "hi"


def test_embeddings_say_the_same_in_both_encodings() -> None:
    sim = simulator(PLAIN)
    floats, packed = (
        ask(sim, Operation.EMBEDDINGS, input="the sea", dimensions=5, encoding_format=encoding).json["data"][0][
            "embedding"
        ]
        for encoding in ("float", "base64")
    )

    assert len(floats) == 5
    assert list(struct.unpack("<5f", base64.b64decode(packed))) == floats


def test_embeddings_differ_by_their_input_alone() -> None:
    sim = simulator(PLAIN)
    rows = ask(sim, Operation.EMBEDDINGS, input=["a", "b", "a"]).json["data"]

    assert rows[0]["embedding"] == rows[2]["embedding"] != rows[1]["embedding"]
    assert ask(sim, Operation.EMBEDDINGS, input=[]).status == 400


@pytest.mark.parametrize("provider", [provider for provider, name in IGNORE if name == "response_format.json_schema"])
def test_instructions_in_words_stand_in_for_what_a_provider_ignores(provider: str) -> None:
    call = {"type": "object", "properties": {"name": {"enum": ["look"]}, "arguments": {"type": "object"}}}
    system = {"role": "system", "content": f"Functions: {{...}}. Answer with JSON of this schema:\n{json.dumps(call)}"}
    prompt = user('Call tool look with {"where": "up"}')
    later = [{"role": "assistant", "content": "{}"}, user("Result of look: blue")]
    sim = simulator(provider)

    assert json.loads(ask(sim, messages=[system, prompt]).text) == {"name": "look", "arguments": {"where": "up"}}
    assert ask(sim, messages=[prompt, *later]).text == "The tool said: blue"
    assert json.loads(ask(sim, messages=[{"role": "system", "content": "Answer with a JSON object."}, user("?")]).text)
