"""An event that is known by its pattern comes to the same as one that is taken apart, whatever stream it stands in."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.draft import AnswerNeeds
from adapters.repair.stream import StreamRepair
from adapters.stream_edits import usage_event
from adapters.types import Operation
from gateway.pipeline import event_relay
from tests.fakes.openai_answers import DONE
from tests.fakes.relayed import Outcome, cut
from tests.fakes.repaired import TOOLS, raw_body

# What ends a text, opens or closes a tag, is escaped, is no ASCII, looks like arguments, or like nothing at all.
WORDS = st.sampled_from(
    ["a", "word", " and", "\u00fc", "1", "<think>", "</think>", "</thi", "nk>", "<", "\n", "\n\n", " ", '"', "\\",
     "\t", "EN", "END", "N", "D", "b", "{", "}", '{"a"', ": 1}", '{"a": 1}',
     '{"a": {"b"', "}}", "[", "", "\u2028", "\U0001f600"]
)  # fmt: skip
RUNS = st.lists(WORDS, min_size=1, max_size=8)
THOUGHTS = st.builds(lambda before, run: [*before, *run], st.sampled_from([["<think>"], ["<thi", "nk>", "a"]]), RUNS)
# Some providers say all of it once more at the end.
ARGUMENTS = [['{"a"', ": ", '"b"', "}", '{"a": "b"}'], ["{", '"a": ', "{", "}", "}"], ["{}", "{}", " {}"]]
REASONING = ("reasoning", "reasoning_content", "thinking")

Payload = dict[str, Any]


def chunk(index: int, members: Payload, delta: Payload) -> Payload:
    return {**members, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}


@st.composite
def said(draw: st.DrawFn) -> list[Payload]:
    """Deltas that say a text, or a thought, each in the same way."""
    names = draw(st.sampled_from([("content",)] * 4 + [(name,) for name in REASONING] + [REASONING[:2]]))
    others: Payload = draw(
        st.sampled_from([{}, {}, {}, {"role": "assistant"}, {"content": None}, {"tool_calls": []}, {"x": "y"}])
    )
    return [{**others, **dict.fromkeys(names, text)} for text in draw(RUNS | THOUGHTS)]


@st.composite
def called(draw: st.DrawFn) -> list[Payload]:
    """Deltas that call a tool, with what each sort of provider leaves out or says again."""
    place: Payload = draw(st.sampled_from([{}, {"index": 0}, {"index": 1}]))
    own_id: Payload = draw(st.sampled_from([{}, {"id": "call_a"}, {"id": "call_b"}, {"id": ""}]))
    kind: Payload = draw(st.sampled_from([{}, {"type": "function"}]))
    name = draw(st.sampled_from(["get_time", "get_weather"]))
    again = draw(st.sampled_from([(), (), ("id",), ("name",), ("id", "name")]))
    texts = draw(RUNS | st.sampled_from(ARGUMENTS))
    first = {**place, **own_id, **kind, "function": {"name": name, "arguments": draw(st.sampled_from(["", '{"']))}}
    further: Payload = {**place, **kind, **(own_id if "id" in again else {})}
    named = {"name": name} if "name" in again else {}
    pieces = [{"tool_calls": [{**further, "function": {**named, "arguments": text}}]} for text in texts]
    both = [{"tool_calls": [*one["tool_calls"], *other["tool_calls"]]} for one, other in itertools.pairwise(pieces)]
    opening: list[Payload] = [{"tool_calls": [first]}] * draw(st.integers(0, 1))
    return [*opening, *draw(st.sampled_from([pieces, pieces, pieces, both]))]


@st.composite
def streams(draw: st.DrawFn) -> list[Payload]:
    """A stream that changes between sorts of pieces, choices and envelopes as it goes."""
    members: Payload = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "up"}
    for name in draw(st.sampled_from([(), (), ("id",), ("object",), ("created",), ("model",)])):
        del members[name]
    payloads = [chunk(0, members, {"role": "assistant", "content": ""})] * draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.sampled_from([0, 0, 0, 0, 1]))
        extra: Payload = draw(st.sampled_from([{}, {}, {}, {"x_groq": {"id": "r"}}, {"model": "other"}, PADDED]))
        run = [chunk(index, {**members, **extra}, delta) for delta in draw(said() | called())]
        if extra is PADDED:
            run = [payload | {"obfuscation": draw(st.sampled_from(["aB3", "x", "", '"']))} for payload in run]
        odd = draw(st.sampled_from([{}] * 12 + ODDITIES))
        for payload in run[draw(st.integers(0, len(run))) :]:
            payload["choices"][0] |= odd
        payloads += run
    ends = [{**members, "choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]} for index in (0, 1)]
    usage: Payload = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    for place in draw(st.sets(st.integers(0, len(payloads)), max_size=1)):
        # There may be no piece at all: calls that go in pairs take two.
        counted = [{**payload, "usage": usage} for payload in (payloads or ends)[:1]]
        payloads[place:place] = draw(st.sampled_from([ends[:1], counted]))
    counts = draw(st.sampled_from([usage, {**usage, "x": 1}, {"prompt_tokens": 2, "completion_tokens": 3}]))
    last = {**members, "choices": [], "usage": counts} | draw(st.sampled_from([{}, {}, {"id": "other"}]))
    return [*payloads, *ends, *draw(st.sampled_from([[], [last]]))]


PADDED: Payload = {"usage": None}
ODDITIES: list[Payload] = [{"finish_reason": "stop"}, {"finish_reason": "tool_calls"}, {"logprobs": -0.5}, {"index": 1},
                            {"usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}]  # fmt: skip
NEEDS = st.sampled_from([None, None, AnswerNeeds(stops=("END", "b")), AnswerNeeds(one_call=True)])
WIRES = st.fixed_dictionaries(
    {
        "separators": st.sampled_from([(",", ":"), (", ", ": ")]),
        "ensure_ascii": st.booleans(),
        "frame": st.sampled_from(["data: %s\n\n", "data: %s\n\n", "data:%s\r\n\r\n"]),
    }
)
WAYS = st.fixed_dictionaries(
    {
        "provider": st.sampled_from(["openai_compatible", "openai_compatible", "groq", "ollama"]),
        "needs": NEEDS,
        "request": st.sampled_from([{}, raw_body(TOOLS)]),
        "alias": st.sampled_from([None, None, b'"alias"']),
    }
)


def on_the_wire(payload: Payload, wire: Payload) -> bytes:
    text = json.dumps(payload, separators=wire["separators"], ensure_ascii=wire["ensure_ascii"])
    told: str = wire["frame"] % text
    return told.encode()


def events_of(sent: bytes) -> list[Any]:
    """The events in *sent*, decoded."""
    return [raw if raw == DONE[:-2] else json.loads(raw.removeprefix(b"data: ")) for raw in sent.split(b"\n\n")[:-1]]


def nameless(sent: bytes) -> list[Any]:
    """The events in *sent*, without the model's name."""
    return [event if isinstance(event, bytes) else {**event, "model": None} for event in events_of(sent)]


def check(raws: Sequence[bytes], way: Payload, places: Sequence[int]) -> None:
    data = b"".join(raws)
    # Ids and times that have to be made up are the same for both.
    with patch("uuid.uuid4", return_value=uuid.UUID(int=7)), patch("time.time", return_value=7.0):
        known = Outcome(list(raws), True, **way)
        split = Outcome(cut(data, places), True, **way)
        with patch.object(event_relay, "find_pattern", return_value=None):
            apart = Outcome(list(raws), True, **way)
            with (
                patch.object(StreamRepair, "passes", return_value=False),
                patch.object(StreamRepair, "counted", lambda repair, event: repair.take(usage_event(event))),
            ):
                repaired = Outcome(list(raws), True, **way)
    assert split.sent == known.sent
    facts = "failure", "committed", "usage", "text_bytes", "settled"
    for fact in facts:
        told = {repr(getattr(outcome, fact)) for outcome in (known, split, apart, repaired)}
        assert len(told) == 1, (fact, told)
    assert events_of(known.sent) == events_of(apart.sent)
    # A name of the model that changes within an answer is not followed by what passes.
    assert nameless(known.sent) == nameless(repaired.sent)
    # What nothing had to be done about keeps its bytes, in both.
    for raw, other in zip(known.sent.split(b"\n\n"), apart.sent.split(b"\n\n"), strict=True):
        assert raw == other or other + b"\n\n" not in raws


@pytest.mark.parametrize("blank", ["\u2028", "\u00a0", " ", "\n"])
@pytest.mark.parametrize("ascii_alone", [True, False])
async def test_blanks_before_a_tag_are_the_same_however_they_are_written(blank: str, ascii_alone: bool) -> None:
    members: Payload = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "up"}
    call: Payload = {"tool_calls": [{"function": {"arguments": "a"}}]}
    deltas: list[Payload] = [call, {"content": blank}, {"content": "<think>"}, {"content": "a"}]
    end: Payload = {**members, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    wire: Payload = {"separators": (",", ":"), "ensure_ascii": ascii_alone, "frame": "data: %s\n\n"}
    raws = [on_the_wire(payload, wire) for payload in (*(chunk(0, members, delta) for delta in deltas), end)]
    check([*raws, DONE], {"provider": "openai_compatible", "needs": None, "request": {}, "alias": None}, [])


@given(streams(), WIRES, WAYS, st.lists(st.integers(0, 10**4), max_size=8))
@settings(max_examples=200, deadline=None)
async def test_a_chat_known_by_its_patterns_is_told_the_same(
    payloads: list[Payload], wire: Payload, way: Payload, places: list[int]
) -> None:
    check([*(on_the_wire(payload, wire) for payload in payloads), DONE], way, places)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(streams(), WIRES, WAYS, st.lists(st.integers(0, 10**4), max_size=8))
@settings(max_examples=5_000, deadline=None)
async def test_many_chats_known_by_their_patterns_are_told_the_same(
    payloads: list[Payload], wire: Payload, way: Payload, places: list[int]
) -> None:
    check([*(on_the_wire(payload, wire) for payload in payloads), DONE], way, places)


@given(st.lists(RUNS, max_size=3), WIRES, WAYS)
@settings(max_examples=100, deadline=None)
async def test_a_completion_known_by_its_patterns_is_told_the_same(
    runs: list[list[str]], wire: Payload, way: Payload
) -> None:
    members = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "up"}
    pieces = [(text, None) for run in runs for text in run] + [("", "stop")]
    payloads = [
        {**members, "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}]}
        for text, finish in pieces
    ]
    raws = [*(on_the_wire(payload, wire) for payload in payloads), DONE]
    check(raws, {**way, "operation": Operation.COMPLETIONS}, [])
