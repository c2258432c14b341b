"""What the local engine has counted, found in the end of a stream."""

from __future__ import annotations

import json

import pytest

from adapters.types import Usage
from gateway.upstream.counted import StreamCounts, asking_for_counts

CHAT = "/v1/chat/completions"


def event(**members: object) -> bytes:
    return b"data: " + json.dumps(members, separators=(",", ":")).encode() + b"\n\n"


def timings(predicted: int) -> dict[str, object]:
    return {"cache_n": 4, "prompt_n": 21, "prompt_ms": 0.5, "predicted_n": predicted, "predicted_per_second": 9.5}


def heard(*pieces: bytes) -> Usage | None:
    counts = StreamCounts()
    for piece in pieces:
        counts.feed(piece)
    return counts.usage()


def test_the_last_counts_are_those_that_hold() -> None:
    events = [event(choices=[], timings=timings(count)) for count in (1, 2, 3)]

    assert heard(*events) == Usage(25, 3, 4)


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_it_does_not_matter_how_the_bytes_come(size: int) -> None:
    stream = b"".join(
        event(choices=[{"delta": {"content": "word"}}], timings=timings(count)) for count in range(1, 200)
    )

    assert heard(*(stream[begin : begin + size] for begin in range(0, len(stream), size))) == Usage(25, 199, 4)


def test_counts_that_break_off_give_way_to_those_before() -> None:
    whole, cut_off = event(timings=timings(7)), event(timings=timings(8))

    assert heard(whole, cut_off[:40]) == Usage(25, 7, 4)


def test_while_the_prompt_is_read_its_length_is_known() -> None:
    so_far = {"cache_n": 100, "prompt_n": 64, "predicted_n": 0}
    report = {"total": 900, "cache": 100, "processed": 164, "time_ms": 10}
    progress = event(choices=[], timings=so_far, prompt_progress=report)

    assert heard(progress) == Usage(900, 0, 100)
    assert heard(progress, event(timings=timings(1))) == Usage(25, 1, 4)


def test_a_text_that_looks_like_counts_is_text() -> None:
    said = '{"timings":{"prompt_n":1,"predicted_n":99}}'

    assert heard(event(choices=[{"delta": {"content": said}}])) is None
    assert heard(b"") is None


@pytest.mark.parametrize(
    ("path", "body", "asks"),
    [
        (CHAT, b'{"messages":[]}', True),
        ("/v1/completions", b'{"prompt":"a","n":1}', True),
        (CHAT, b'{"messages":[],"n":2}', False),
        (CHAT, b'{"messages":[],"n": 12}', False),
        ("/v1/embeddings", b'{"input":"a"}', False),
        (CHAT, b"{}", False),
        (CHAT, b"[1,2,3]", False),
    ],
)
def test_only_one_choice_is_counted(path: str, body: bytes, asks: bool) -> None:
    asking = asking_for_counts(path, body)

    assert (asking != body) is asks
    if asks:
        assert json.loads(asking) == {"timings_per_token": True, **json.loads(body)}


def test_the_clients_own_word_counts() -> None:
    asking = asking_for_counts(CHAT, b'{"timings_per_token":false}')

    assert json.loads(asking) == {"timings_per_token": False}
