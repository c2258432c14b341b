"""Any stream, in any pieces: what the client gets is the same, and says no more than the upstream did."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.types import Usage
from tests.fakes.openai_answers import DONE, ROLE, STOP, delta, event, payloads, text_of, usage_chunk
from tests.fakes.relayed import Outcome, cut

BROKEN = b"data: {broken\n\n"
PIECES: dict[str, bytes] = {
    "role": ROLE,
    "a": delta(content="a"),
    "b": delta(content="b\u2028\u00e9"),
    "tool": delta(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
    "thought": delta(reasoning_content="hm"),
    "comment": b": ping\n\n",
    "broken": BROKEN,
    "empty": event({"choices": []}),
    "usage": usage_chunk(),
    "usage-on-choice": usage_chunk(choices=[{"index": 0, "delta": {"content": "c"}}]),
    "error": event({"error": {"message": "gone", "code": 503}}),
    "stop": STOP,
    "done": DONE,
}
CONTENT = {"a", "b", "tool", "thought", "usage-on-choice"}


STREAMS = st.lists(st.sampled_from(sorted(PIECES)), max_size=12)


async def check(names: list[str], places: list[int], wants_usage: bool) -> None:
    data = b"".join(PIECES[name] for name in names)
    whole, split = Outcome([data], wants_usage), Outcome(cut(data, places), wants_usage)
    assert (split.sent, split.failure, split.committed) == (whole.sent, whole.failure, whole.committed)

    heard = names[: names.index("done")] if "done" in names else names
    succeeded = whole.failure is None
    assert whole.sent.endswith(DONE) == succeeded
    assert DONE not in whole.sent[: -len(DONE)]
    assert whole.exchange.ended == succeeded
    assert whole.settled == ([None] if succeeded and not _usage_heard(heard) else [Usage(9, 3)] if succeeded else [])
    if succeeded:
        assert "stop" in heard
        assert "error" not in heard
        assert heard.count("broken") <= 2
    if not whole.committed:
        assert whole.sent == b""
    assert b"ping" not in whole.sent
    assert b"broken" not in whole.sent
    assert b'"error"' not in whole.sent
    shown = [one for one in payloads(whole.sent) if one != "[DONE]"]
    assert [one for one in shown if one.get("usage")] == (
        [one for one in shown if not one["choices"] and "usage" in one][-1:]
        if wants_usage and succeeded and _usage_heard(heard)
        else []
    )
    said = "".join(
        json.loads(PIECES[name][6:])["choices"][0]["delta"].get("content") or "" for name in heard if name in CONTENT
    )
    assert said.startswith(text_of(whole.sent))
    assert not succeeded or said == text_of(whole.sent)


def _usage_heard(names: list[str]) -> bool:
    return "usage" in names or "usage-on-choice" in names


@given(STREAMS, st.lists(st.integers(0, 10**4), max_size=8), st.booleans())
@settings(max_examples=150, deadline=None)
async def test_a_stream_is_relayed_the_same_in_any_pieces(names: list[str], places: list[int], usage: bool) -> None:
    await check(names, places, usage)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(STREAMS, st.lists(st.integers(0, 10**4), max_size=40), st.booleans())
@settings(max_examples=5000, deadline=None)
async def test_many_streams_are_relayed_the_same_in_any_pieces(
    names: list[str], places: list[int], usage: bool
) -> None:
    await check(names, places, usage)


async def test_a_stream_byte_by_byte() -> None:
    names = ["role", "a", "comment", "b", "broken", "usage-on-choice", "stop", "usage", "done"]
    data = b"".join(PIECES[name] for name in names)
    single: list[Any] = [bytes([byte]) for byte in data]
    assert Outcome(single, True).sent == Outcome([data], True).sent
