"""Any stream, its bytes and its text cut anywhere: what a client has in the end is the same, and nothing is lost."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.draft import AnswerNeeds
from adapters.repair.misplaced import AnswerFailedError
from adapters.types import Operation
from gateway.upstream.sse import SseSplitter
from tests.fakes.repaired import (
    ROLE,
    TOOLS,
    Heard,
    call,
    chunk,
    event_of,
    raw_body,
    repair_of,
    repaired,
    repaired_events,
)

CHAT = Operation.CHAT
WORDS = st.text("ab<think>/EN D{}\n", max_size=30)
ARGUMENTS = st.dictionaries(st.sampled_from("ab"), st.integers(0, 9) | st.text("{}ü", max_size=3), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from(["get_time", "get_weather"]), ARGUMENTS), max_size=2)
PLACES = st.lists(st.integers(0, 200), max_size=8)
ENDINGS = st.sampled_from(["stop", "eos", "tool_use", "length"])
NEEDS = st.sampled_from([None, AnswerNeeds(stops=("END", "b")), AnswerNeeds(one_call=True)])
HABITS = st.fixed_dictionaries(
    {
        "index": st.booleans(),
        "id": st.booleans(),
        "role": st.booleans(),
        "again": st.booleans(),
        "finish": st.booleans(),
    }
)


NO_BLANKS = str.maketrans("", "", "\n ")
TAGGED = re.compile(r"\s*<think>(.*?)(?:</think>(.*))?|\s*</think>(.*)", re.DOTALL)


def without_tags(text: str) -> str:
    """The text without the tags that part it, by another rule than the one under test."""
    found = TAGGED.fullmatch(text)
    return "".join(part or "" for part in found.groups()) if found else text


def cut(text: str, places: Sequence[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in places} - {0}), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges) if start < end]


def told(
    text: str, reasoning: str, calls: Sequence[tuple[str, Any]], ending: str, habits: dict[str, bool], places: list[int]
) -> list[dict[str, Any]]:
    """A stream that says all this in the way of some provider, its pieces cut at *places*."""
    role: dict[str, Any] = {"role": "assistant"} if habits["role"] else {}
    pieces = [chunk(reasoning=piece, **role) for piece in cut(reasoning, places)]
    pieces += [chunk(content=piece, **role) for piece in cut(text, places)]
    for number, (name, arguments) in enumerate(calls):
        whole = json.dumps(arguments)
        index = number if habits["index"] else None
        identity = {"id": f"call_{number}", "type": "function"} if habits["id"] or not habits["index"] else {}
        pieces.append(chunk(tool_calls=[call(index, "", name, **identity)], **role))
        pieces += [chunk(tool_calls=[call(index, piece)], **role) for piece in cut(whole, places)]
        if habits["again"]:
            pieces.append(chunk(tool_calls=[call(index, whole)], **role))
    if habits["finish"] and pieces:
        pieces[-1]["choices"][0]["finish_reason"] = ending
        return [ROLE, *pieces]
    return [ROLE, *pieces, chunk(ending)]


def summary(heard: Heard) -> tuple[Any, ...]:
    return heard.said, heard.roles, [one["id"] for one in heard.calls.get(0, [])]


def check(text: str, reasoning: str, calls: Any, ending: str, habits: Any, places: list[int], needs: Any) -> None:
    one = repaired(told(text, reasoning, calls, ending, habits, []), "vllm", needs=needs, request=TOOLS)
    split = repaired(told(text, reasoning, calls, ending, habits, places), "vllm", needs=needs, request=TOOLS)
    assert summary(one) == summary(split)
    content, thought, found, finish = one.said
    assert len(finish) == 1
    if needs is None:
        assert [(name, json.loads(arguments)) for name, arguments in found] == list(calls)
        assert (thought + content).translate(NO_BLANKS) == (reasoning + without_tags(text)).translate(NO_BLANKS)
        assert finish == [{"length": "length"}.get(ending, "tool_calls" if calls else "stop")]
    if needs is not None and needs.stops:
        assert not any(stop in content for stop in needs.stops)


@given(WORDS, WORDS, CALLS, ENDINGS, HABITS, PLACES, NEEDS)
@settings(max_examples=200, deadline=None)
def test_pieces_of_any_size_say_the_same(
    text: str, reasoning: str, calls: Any, ending: str, habits: Any, places: list[int], needs: Any
) -> None:
    check(text, reasoning, calls, ending, habits, places, needs)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(WORDS, WORDS, CALLS, ENDINGS, HABITS, PLACES, NEEDS)
@settings(max_examples=10_000, deadline=None)
def test_many_pieces_of_any_size_say_the_same(
    text: str, reasoning: str, calls: Any, ending: str, habits: Any, places: list[int], needs: Any
) -> None:
    check(text, reasoning, calls, ending, habits, places, needs)


@given(st.text("ab ü\n", max_size=20), CALLS, PLACES)
@settings(max_examples=150, deadline=None)
def test_what_openai_could_have_sent_passes_byte_for_byte(text: str, calls: Any, places: list[int]) -> None:
    habits = {"index": True, "id": True, "role": False, "again": False, "finish": False}
    payloads = told(text, "", calls, "tool_calls" if calls else "stop", habits, places)
    if any(arguments == {} for _, arguments in calls):
        payloads = [one for one in payloads if one["choices"][0]["delta"] != {}][:1]
    events = [event_of(one) for one in payloads]
    assert b"".join(one.raw for one in repaired_events(events)) == b"".join(one.raw for one in events)


@given(WORDS, CALLS, HABITS, PLACES)
@settings(max_examples=100, deadline=None)
def test_bytes_may_be_cut_anywhere(text: str, calls: Any, habits: Any, places: list[int]) -> None:
    payloads = told(text, "", calls, "stop", habits, [3, 5])
    data = b"".join(event_of(one).raw for one in payloads)
    edges = [0, *sorted({place * 7 % (len(data) + 1) for place in places} - {0}), len(data)]
    splitter = SseSplitter()
    events = [
        event for start, end in itertools.pairwise(edges) if start < end for event in splitter.feed(data[start:end])
    ]
    read = [event_of(json.loads(event.data)) for event in events if event.data]
    assert repaired_events(read, "vllm") == repaired_events([event_of(one) for one in payloads], "vllm")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a{<", max_size=3),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(
        st.sampled_from(["index", "id", "type", "function", "name", "arguments", "content", "thinking", "text"]),
        inner, max_size=3,
    ),
    max_leaves=6,
)  # fmt: skip
ODD_DELTAS = st.dictionaries(
    st.sampled_from(["role", "content", "reasoning", "reasoning_content", "tool_calls", "function_call", "refusal"]),
    JSON,
    max_size=4,
)
ODD_CHOICES = st.fixed_dictionaries(
    {"finish_reason": st.text(max_size=3) | st.none()},
    optional={
        "index": JSON, "delta": ODD_DELTAS | JSON, "message": ODD_DELTAS, "logprobs": JSON, "usage": JSON, "text": JSON,
        "error": JSON,
    },
)  # fmt: skip
ODD_CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(ODD_CHOICES, max_size=2)},
    optional={"id": JSON, "object": JSON, "created": JSON, "model": JSON, "x_groq": JSON},
)


@given(st.lists(ODD_CHUNKS, max_size=4), NEEDS, st.sampled_from(["vllm", "groq", "fireworks"]))
@settings(max_examples=400, deadline=None)
def test_no_stream_makes_the_repair_fail_otherwise(payloads: list[Any], needs: Any, provider: str) -> None:
    machine = repair_of(provider).stream(CHAT, needs, raw_body(TOOLS))
    for payload in payloads:
        try:
            out = machine.take(event_of(payload))
        except (msgspec.DecodeError, AnswerFailedError):
            continue
        assert all(one.raw == b"data: " + one.data + b"\n\n" for one in out)
    for one in (*machine.end(done=True), *machine.release()):
        json.loads(one.data)
