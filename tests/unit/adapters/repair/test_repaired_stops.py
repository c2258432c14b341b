"""Text ends before a stop, in whatever pieces it comes, and its log probabilities with it; text completions."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.draft import AnswerNeeds
from adapters.repair.stops import StopWatch
from adapters.types import Operation
from tests.fakes.repaired import MEMBERS, ROLE, STOP, chunk, event_of, repaired, repaired_events, repaired_text

STOPPED: list[Any] = [
    pytest.param(("END",), "one END two", "one ", id="one"),
    pytest.param(("END",), "one EN", "one EN", id="nearly"),
    pytest.param(("b", "cd"), "abcd", "a", id="the-first-that-is-complete"),
    pytest.param(("abcd", "bc"), "xabcd", "xa", id="not-the-one-that-began-first"),
    pytest.param(("aab",), "aaab", "a", id="overlapping-itself"),
    pytest.param(("\n\n",), "a\nb\n\nc", "a\nb", id="line-ends"),
    pytest.param(("é",), "caféx", "caf", id="not-ascii"),
    pytest.param(("END",), "END", "", id="at-once"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("stops", "text", "kept"), STOPPED)
def test_text_ends_before_a_stop(stops: tuple[str, ...], text: str, kept: str, size: int) -> None:
    out = repaired_text(text, size, needs=AnswerNeeds(stops=stops))
    assert (out.content[0], out.finish[0]) == (kept, ["stop"])


def test_a_stop_in_the_reasoning_is_none() -> None:
    out = repaired_text("<think>END</think>a END b", 3, needs=AnswerNeeds(stops=("END",)))
    assert out.said == ("a ", "END", [], ["stop"])


def test_each_choice_has_its_own_stops() -> None:
    needs = AnswerNeeds(stops=("END",))
    stream = [ROLE, chunk(index=1, role="assistant", content="b"), chunk(content="aEN"), chunk(index=1, content=" EN"),
              chunk(content="D!"), chunk(index=1, content="d"), chunk("length", index=1)]  # fmt: skip
    out = repaired(stream, needs=needs, request={"n": 2})
    assert (out.content, out.finish) == ({0: "a", 1: "b ENd"}, {0: ["stop"], 1: ["length"]})


def test_after_the_last_stop_the_stream_is_over() -> None:
    events = [event_of(one) for one in (ROLE, chunk(content="a END b"), chunk(content="c"), STOP)]
    out = repaired_events(events, needs=AnswerNeeds(stops=("END",)))
    assert [one.finish_reasons for one in out] == [(), ((0, "stop"),)]


def logprob(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": []}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_log_probabilities_are_cut_with_the_text(size: int) -> None:
    tokens = ["a", "b", "E", "N", "D", "c"]
    pieces = []
    for at in range(0, len(tokens), size):
        piece = chunk(content="".join(tokens[at : at + size]))
        piece["choices"][0]["logprobs"] = {"content": [logprob(one) for one in tokens[at : at + size]], "refusal": None}
        pieces.append(piece)
    out = repaired([ROLE, *pieces, STOP], needs=AnswerNeeds(stops=("END",)))
    assert out.content[0] == "ab"
    assert [one["token"] for one in out.logprobs[0]] == ["a", "b"]


def test_held_text_keeps_its_log_probabilities() -> None:
    pieces = []
    for token in ("a", "E", "N", "x"):
        piece = chunk(content=token)
        piece["choices"][0]["logprobs"] = {"content": [logprob(token)], "refusal": None}
        pieces.append(piece)
    out = repaired([ROLE, *pieces, STOP], needs=AnswerNeeds(stops=("END",)))
    assert [one["token"] for one in out.logprobs[0]] == ["a", "E", "N", "x"]


@pytest.mark.parametrize("odd", [[None], ["a"], "xy", {"a": 1}, 5])
def test_log_probabilities_that_are_none_do_not_stop_the_text(odd: Any) -> None:
    piece = chunk(content="a")
    piece["choices"][0]["logprobs"] = {"content": odd, "refusal": None}
    out = repaired([ROLE, piece, STOP], needs=AnswerNeeds(stops=("END",)))
    assert (out.content[0], out.logprobs[0]) == ("a", [])


@given(st.text("abE ND", max_size=25), st.lists(st.text("abE ND", min_size=1, max_size=4), min_size=1, max_size=3),
       st.lists(st.integers(0, 25), max_size=5))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_any_pieces_end_at_the_same_place(text: str, stops: list[str], places: list[int]) -> None:
    def kept(pieces: list[str]) -> str:
        watch = StopWatch(stops)
        said = "".join(watch.feed(piece) for piece in pieces if piece)
        return said + ("" if watch.hit else watch.end())

    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    result = kept(pieces)
    assert result == kept([text])
    assert text.startswith(result)
    assert not any(stop in result for stop in stops)
    assert result == text or any(text[len(result) :].startswith(stop) for stop in stops)


# Text completions


def text_chunk(text: Any, finish: Any = None, **members: Any) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, **members}
    return {**MEMBERS, "object": "text_completion", "choices": [choice]}


def text_events(*payloads: Any, **options: Any) -> list[Any]:
    events = repaired_events([event_of(one) for one in payloads], operation=Operation.COMPLETIONS, **options)
    return [json.loads(one.data)["choices"][0] for one in events]


def test_text_is_never_null() -> None:
    choices = text_events(text_chunk("a"), text_chunk(None, "eos"))
    assert [(one["text"], one["finish_reason"]) for one in choices] == [("a", None), ("", "stop")]


def test_text_completions_end_at_stops_with_their_log_probabilities() -> None:
    def columns(*tokens: str) -> dict[str, Any]:
        return {
            "tokens": list(tokens),
            "token_logprobs": [-1.0] * len(tokens),
            "top_logprobs": None,
            "text_offset": [0],
        }

    pieces = [text_chunk("a EN", logprobs=columns("a", " ", "EN")), text_chunk("D b", logprobs=columns("D", " b"))]
    choices = text_events(*pieces, needs=AnswerNeeds(stops=("END",)))
    assert "".join(one["text"] for one in choices) == "a "
    assert [token for one in choices for token in (one["logprobs"] or {}).get("tokens", ())] == ["a", " "]
    assert choices[-1]["finish_reason"] == "stop"


def test_log_probabilities_may_come_with_other_columns_later() -> None:
    full = {"tokens": ["a", "E"], "token_logprobs": [-1.0, -2.0]}
    pieces = [text_chunk("aE", logprobs=full), text_chunk("c", logprobs={"tokens": ["c"]})]
    choices = text_events(*pieces, needs=AnswerNeeds(stops=("END",)))
    assert "".join(one["text"] for one in choices) == "aEc"
    told = [one["logprobs"] for one in choices if one["logprobs"]]
    assert [token for one in told for token in one["tokens"]] == ["a", "E", "c"]
    assert told[-1]["token_logprobs"] == [-2.0, None]


def test_tags_in_a_text_completion_are_text() -> None:
    choices = text_events(text_chunk("<think>a"), text_chunk("</think>", "stop"), provider="vllm")
    assert "".join(one["text"] for one in choices) == "<think>a</think>"
