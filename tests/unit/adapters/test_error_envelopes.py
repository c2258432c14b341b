"""Error bodies in every envelope, read into the same fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.error_body import ErrorFields, error_fields, read_error
from adapters.failures import from_fields
from gateway.pipeline.outcome import to_error


def same(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c", "param": "p"}}, ErrorFields("m", "t", "c", "p")),
        ({"error": {"message": "m", "code": None, "param": None}}, ErrorFields("m")),
        # Fireworks
        ({"error": {"object": "error", "type": "t", "code": "c", "message": "m"}}, ErrorFields("m", "t", "c")),
        # llama.cpp and vLLM, whose code is the status
        ({"error": {"message": "m", "code": 503}}, ErrorFields("m", status=503)),
        ({"error": {"message": "m", "code": "503"}}, ErrorFields("m", status=503)),
        ({"error": {"message": "m", "code": 7}}, ErrorFields("m")),
        ({"error": {"message": "m", "code": True}}, ErrorFields("m")),
        # Cerebras
        ({"message": "m", "type": "t", "param": "p", "code": "c"}, ErrorFields("m", "t", "c", "p")),
        # SGLang, TensorRT-LLM, older vLLM
        (
            {"object": "error", "message": "m", "type": "BadRequestError", "param": None, "code": 400},
            ErrorFields("m", "BadRequestError", status=400),
        ),
        # TGI
        ({"error": "m", "error_type": "t"}, ErrorFields("m", "t")),
        # MLX
        ({"error": "m"}, ErrorFields("m")),
        # Triton, and whatever else is made with FastAPI
        ({"detail": "m"}, ErrorFields("m")),
        (
            {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Field required", "input": {"a": "secret"}}]},
            ErrorFields("messages.0.role: Field required", param="messages.0.role"),
        ),
        (
            {"detail": [{"loc": ["body"], "msg": "m"}, {"loc": ["body", "n"], "msg": "too many"}]},
            ErrorFields("m; n: too many", param="n"),
        ),
        ({"detail": [{"msg": str(number)} for number in range(7)]}, ErrorFields("0; 1; 2; 3; 4; and 2 more")),
        ({"detail": {"message": "m"}}, ErrorFields("m")),
        ({"detail": {"error": {"message": "m", "code": "c"}}}, ErrorFields("m")),
        # Anthropic's and Gemini's
        ({"type": "error", "error": {"type": "overloaded", "message": "m"}}, ErrorFields("m", "overloaded")),
        ([{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}}], ErrorFields("m", status=429)),
        # A proxy's, around somebody else's
        ({"error": {"message": '{"error":{"message":"m","code":"c"}}', "code": 502}},
         ErrorFields("m", code="c", status=502)),
        ({"error": '{"object":"error","message":"m"}'}, ErrorFields("m")),
        ({"error": {"message": "{not JSON"}}, ErrorFields("{not JSON")),
        # A framework's own page
        ({"status": 500, "error": "Internal Server Error", "message": "m", "path": "/v1"}, ErrorFields("m")),
        ({"error": {"error": "m"}}, ErrorFields("m")),
        ({"msg": "m"}, ErrorFields("m")),
        ({"error": {"type": "overloaded_error"}}, ErrorFields("", "overloaded_error")),
        (
            {"error": {"message": "m", "code": "tool_use_failed", "failed_generation": "<f>"}},
            ErrorFields("m", code="tool_use_failed", failed_generation="<f>"),
        ),
        ({"error": "Model m is currently loading", "estimated_time": 20.5},
         ErrorFields("Model m is currently loading", retry_after_seconds=20.5)),
        ("m", ErrorFields("m")),
        ("", None),
        ({}, None),
        ({"error": {}}, None),
        ({"error": 5}, None),
        ({"error": None}, None),
        ([], None),
        ([[]], None),
        (None, None),
    ],
)  # fmt: skip
def test_every_envelope_is_read(body: Any, fields: ErrorFields | None) -> None:
    assert read_error(json.dumps(body).encode()) == fields


@pytest.mark.parametrize("body", [b"Service Unavailable", b"  no healthy upstream\n"])
def test_a_line_of_plain_text_is_a_message(body: bytes) -> None:
    assert read_error(body) == ErrorFields(body.decode().strip())


def test_a_few_lines_are_one() -> None:
    assert read_error(b"500 Internal Server Error\r\n  it fell over\n") == ErrorFields(
        "500 Internal Server Error it fell over"
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{", b'{"error": "cut of', b"\xff", b"[" * 100_000, b"oh\n  no\n  not\n  again",
     b"see <b>this</b>", b"x" * 500, b"a\x00b"],
)  # fmt: skip
def test_markup_dumps_and_broken_json_say_nothing(body: bytes) -> None:
    assert read_error(body) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["²", "٣", "9" * 5000]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "type", "code", "param", "detail", "msg", "loc", "error_type", "estimated_time"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON, st.none() | st.integers(300, 599))
@settings(max_examples=400, deadline=None)
def test_every_json_can_be_read_as_a_refusal(body: Any, status: int | None) -> None:
    fields = error_fields(body) or ErrorFields()
    failure = from_fields("acme", fields, status, same)
    assert failure.message
    assert len(failure.message) <= 700
    assert failure.retry_after_seconds is None or failure.retry_after_seconds >= 0
    assert to_error(failure).status >= 400


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_every_body_can_be_read_as_a_refusal(body: bytes) -> None:
    fields = read_error(body)
    assert fields is None or fields.message or fields.code or fields.type
