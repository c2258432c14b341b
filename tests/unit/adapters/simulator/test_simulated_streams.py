"""A simulated stream says what the whole answer says, with the habits of its provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.registry import load_spec
from adapters.vocabulary import LogprobsShape, UsagePlace
from tests.unit.adapters.simulator.asking import CHATS, Heard, ask, simulator, tool, user

PLAIN = "openai_compatible"
ASKED: dict[str, Any] = {"stream_options": {"include_usage": True}}


def takes_usage(provider: str) -> bool:
    return load_spec(provider).params["stream_options.include_usage"].held_by("m")


def usages(heard: Heard) -> list[dict[str, Any]]:
    return [chunk["usage"] for chunk in heard.chunks if chunk.get("usage")]


@pytest.mark.parametrize("provider", CHATS)
def test_the_pieces_make_up_the_whole(provider: str) -> None:
    sim, count = simulator(provider), [user("Count to 9")]
    whole = ask(sim, messages=count)
    heard = ask(sim, messages=count, stream=True)

    assert heard.joined("content") == whole.text
    assert heard.chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    # A reason may be lost on the way, where the file says that it happens.
    assert heard.reasons in ([whole.choice["finish_reason"]], [] if sim.spec.finish_reason.missing else None)


@pytest.mark.parametrize("provider", CHATS)
def test_the_end_is_marked_as_the_file_says(provider: str) -> None:
    marked = ask(simulator(provider), stream=True).payloads[-1] == "[DONE]"

    assert marked == (load_spec(provider).streaming.done_marker is not None)


@pytest.mark.parametrize("provider", [name for name in CHATS if takes_usage(name)])
def test_usage_that_is_asked_for_stands_where_the_file_says(provider: str) -> None:
    sim = simulator(provider)
    facts = sim.spec.streaming
    heard = ask(sim, stream=True, **ASKED)
    last = heard.chunks[-1]

    match facts.usage:
        case UsagePlace.NEVER:
            assert usages(heard) == []
        case UsagePlace.FINISH_CHUNK:
            assert last["choices"]
            assert usages(heard) == [last["usage"]]
        case UsagePlace.OWN_CHUNK:
            assert last["choices"] == []
            assert usages(heard) == [last["usage"]]
    if facts.usage is not UsagePlace.NEVER:
        assert last["usage"]["completion_tokens"] == ask(sim).json["usage"]["completion_tokens"]


@pytest.mark.parametrize("provider", CHATS)
def test_usage_comes_unasked_only_where_the_file_says_so(provider: str) -> None:
    facts = load_spec(provider).streaming
    heard = ask(simulator(provider), stream=True)
    told = bool(usages(heard)) or any(_at(chunk, facts.usage_field) for chunk in heard.chunks)

    assert told == (facts.usage_unasked and facts.usage is not UsagePlace.NEVER)


def _at(chunk: dict[str, Any], path: str | None) -> Any:
    found: Any = chunk if path else None
    for name in (path or "").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def test_usage_of_each_choice_comes_by_itself_where_the_file_says_so() -> None:
    heard = ask(simulator("llama_cpp_server"), messages=[user("Count to 3")], n=2, stream=True, **ASKED)

    assert [usage["completion_tokens"] for usage in usages(heard)] == [3, 3]


@pytest.mark.parametrize("provider", CHATS)
def test_tool_calls_are_put_together_from_their_pieces(provider: str) -> None:
    sim = simulator(provider)
    asking = [user('Call tool look with {"where": "up and away"}')]
    for model in sim.models.names():
        heard = ask(sim, model=model, messages=asking, tools=[tool("look", where="string")], stream=True)
        if heard.status == 200:
            break
    else:
        pytest.skip("none of its models has tools in a chat")
    parts = [
        call
        for chunk in heard.chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls") or []
    ]
    if not parts:
        pytest.skip("its model ignores tools")

    assert json.loads("".join(part["function"]["arguments"] for part in parts)) == {"where": "up and away"}
    assert {part["index"] for part in parts} == {0}
    assert (len(parts) == 1) == sim.spec.streaming.whole_tool_calls
    assert heard.reasons == ["tool_calls"]


def test_choices_take_turns() -> None:
    heard = ask(simulator(PLAIN), messages=[user("Count to 3")], n=2, stream=True)
    order = [choice["index"] for chunk in heard.chunks for choice in chunk["choices"] if choice["delta"].get("content")]

    assert order == [0, 1, 0, 1, 0, 1]
    assert heard.joined("content", 0) == heard.joined("content", 1) == "1 2 3"


@pytest.mark.parametrize("provider", ["groq", "fireworks"])
def test_reasoning_comes_first_in_a_field_of_its_own(provider: str) -> None:
    sim = simulator(provider)
    field = (sim.spec.reasoning.stream_field or "").removeprefix("delta.")
    heard = ask(sim, stream=True)
    fields = [name for chunk in heard.chunks for name in chunk["choices"][0]["delta"] if name != "role"][1:]

    assert heard.joined(field) == "Let me think about it."
    assert fields == sorted(fields, key=[field, "content"].index)


def test_logprobs_may_be_one_number_a_chunk() -> None:
    sim = simulator("together")
    heard = ask(sim, messages=[user("Say exactly: hi there")], logprobs=1, stream=True)
    found = [
        choice["logprobs"] for chunk in heard.chunks for choice in chunk["choices"] if choice["logprobs"] is not None
    ]

    assert sim.spec.params["logprobs"].stream_shape is LogprobsShape.FLOAT
    assert [type(one) for one in found] == [float, float]


def test_the_reading_of_the_prompt_is_reported_when_asked_for() -> None:
    sim = simulator("llama_cpp_server")
    param, field = sim.spec.streaming.progress_param, sim.spec.streaming.progress_field
    assert param is not None
    assert field is not None

    asked: dict[str, Any] = {param: True}
    assert field in ask(sim, stream=True, **asked).chunks[0]
    assert field not in ask(sim, stream=True).chunks[0]


@pytest.mark.parametrize("provider", [name for name in CHATS if load_spec(name).streaming.comments])
def test_comments_come_where_the_file_says_so(provider: str) -> None:
    assert ask(simulator(provider), stream=True).raw.startswith(b": ")


def test_times_pass_before_the_answer_and_between_its_tokens() -> None:
    sim = simulator(PLAIN, first_token_seconds=0.5, tokens_per_second=4)
    count = [user("Count to 3")]
    heard = ask(sim, messages=count, stream=True)

    assert (heard.delay, heard.waits) == (0.5, [0.25, 0.25, 0.25])
    assert ask(sim, messages=count).delay == 0.5 + 3 * 0.25


def test_jitter_is_the_same_for_the_same_request() -> None:
    def times() -> list[float]:
        sim = simulator(PLAIN, tokens_per_second=10, jitter=0.5)
        return ask(sim, messages=[user("Count to 5")], stream=True).waits

    assert times() == times()
    assert len(set(times())) > 1
    assert all(0.05 <= seconds <= 0.15 for seconds in times())
