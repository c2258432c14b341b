"""Plain requests to the local engine as streams, and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.errors import ProviderError
from adapters.types import FailureKind
from gateway.upstream.fold import as_stream, fold

CHAT = "/v1/chat/completions"


def events(*payloads: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(payload).encode() for payload in payloads) + b"data: [DONE]\n\n"


def delta(index: int, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": fields, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": counts}


def test_a_plain_request_becomes_a_stream_with_usage_and_keeps_the_rest_byte_for_byte() -> None:
    streamed = as_stream(CHAT, b'{"messages": [{"x":1.50}], "stream": false}')

    assert streamed is not None
    assert b'[{"x":1.50}]' in streamed
    assert json.loads(streamed)["stream"] is True
    assert json.loads(streamed)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("path", "body"),
    [(CHAT, b'{"stream": true}'), ("/v1/embeddings", b'{"input": "a"}'), (CHAT, b"not json"), (CHAT, b"[]")],
)
def test_other_requests_go_as_they_are(path: str, body: bytes) -> None:
    assert as_stream(path, body) is None


def test_choices_that_come_interleaved_are_put_together_each() -> None:
    status, body = fold(
        CHAT,
        events(
            delta(0, role="assistant", content=None),
            delta(0, content="Hel"),
            delta(1, role="assistant", content=None),
            delta(1, content="By"),
            delta(0, content="lo"),
            delta(0, "stop"),
            usage(7, 2),
            delta(1, content="e"),
            delta(1, "length"),
            usage(7, 2),
        ),
    )

    answer = json.loads(body)
    assert status == 200
    assert answer["object"] == "chat.completion"
    assert [choice["message"]["content"] for choice in answer["choices"]] == ["Hello", "Bye"]
    assert [choice["finish_reason"] for choice in answer["choices"]] == ["stop", "length"]
    assert answer["usage"] == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}


def test_pieces_of_tool_calls_are_joined() -> None:
    first = {"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    second = {"index": 0, "function": {"arguments": ":1}"}}
    _, body = fold(CHAT, events(delta(0, tool_calls=[first]), delta(0, tool_calls=[second]), delta(0, "tool_calls")))

    message = json.loads(body)["choices"][0]["message"]
    assert message["tool_calls"] == [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    ]


def test_an_error_in_the_stream_is_the_answer() -> None:
    status, body = fold(CHAT, events(delta(0, content="x"), {"error": {"code": 503, "message": "gone"}}))

    assert status == 503
    assert json.loads(body) == {"error": {"code": 503, "message": "gone"}}


def test_reports_of_progress_leave_no_trace() -> None:
    progress = delta(0, role="assistant", content=None) | {"prompt_progress": {"total": 9, "processed": 3}}
    _, body = fold(CHAT, events(progress, progress, delta(0, content="x"), delta(0, "stop")))

    assert b"progress" not in body
    assert json.loads(body)["choices"][0]["message"]["content"] == "x"


def test_a_stream_that_ends_too_early_is_no_answer() -> None:
    with pytest.raises(ProviderError, match="before it was complete") as failure:
        fold(CHAT, events(delta(0, content="x")))

    assert failure.value.kind is FailureKind.INTERRUPTED


def test_text_completions_are_put_together_too() -> None:
    def piece(text: str, finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {"object": "text_completion", "choices": [choice]}

    _, body = fold("/v1/completions", events(piece("a"), piece("b"), piece("", "length")))

    answer = json.loads(body)
    assert answer["object"] == "text_completion"
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("ab", "length")


def test_an_answer_without_a_word_has_empty_content() -> None:
    _, body = fold(CHAT, events(delta(0, role="assistant", content=None), delta(0, "stop")))

    assert json.loads(body)["choices"][0]["message"] == {"role": "assistant", "content": ""}
