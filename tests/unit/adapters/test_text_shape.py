"""Text events that differ in nothing but their text are known by what they share."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.stream import TextShape, read_event, text_shape
from adapters.types import EventKind

BEFORE = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"'
)
AFTER = b'"},"finish_reason":null}]}\n\n'


def shape_of(raw: bytes) -> TextShape | None:
    return text_shape(read_event(raw, raw[6:-2]))


@pytest.fixture
def shape() -> TextShape:
    shape = shape_of(BEFORE + b"word" + AFTER)
    assert shape == TextShape(BEFORE, AFTER)
    return shape


def test_another_text_has_the_same_shape(shape: TextShape) -> None:
    assert shape.text_bytes(BEFORE + " wörter".encode() + AFTER) == 8


@pytest.mark.parametrize(
    "raw",
    [
        BEFORE + AFTER,
        BEFORE + b'a","x":"b' + AFTER,
        BEFORE + rb"a\n" + AFTER,
        BEFORE + b"a\tb" + AFTER,
        BEFORE + b"a\xff" + AFTER,
        BEFORE + b"one" + AFTER + BEFORE + b"two" + AFTER,
        BEFORE + b"word",
        b"word" + AFTER,
        BEFORE.replace(b'"index":0', b'"index":1') + b"word" + AFTER,
        BEFORE + b"word" + AFTER.replace(b"null", b'"stop"'),
        (BEFORE + AFTER)[: len(BEFORE) + 3],
    ],
)
def test_everything_else_has_to_be_read(shape: TextShape, raw: bytes) -> None:
    assert shape.text_bytes(raw) == 0


@pytest.mark.parametrize("text", [rb"a\"b", rb"a\u0041"])
def test_a_text_with_escapes_teaches_no_shape(text: bytes) -> None:
    assert shape_of(BEFORE + text + AFTER) is None


def test_an_event_with_two_contents_teaches_no_shape() -> None:
    assert shape_of(BEFORE + b'word","x":{"content":"other"},"y":"' + AFTER) is None


@given(st.binary(max_size=12) | st.text(max_size=12).map(str.encode) | st.text().map(lambda t: json.dumps(t).encode()))
def test_what_passes_by_its_shape_is_read_as_the_same_text(inner: bytes) -> None:
    raw = BEFORE + inner + AFTER
    length = TextShape(BEFORE, AFTER).text_bytes(raw)
    if length:
        event = read_event(raw, raw[6:-2])
        chunk: Any = msgspec.json.decode(event.data)
        assert (event.kind, event.plain, event.text_bytes) == (EventKind.CONTENT, True, length)
        assert chunk["choices"][0]["delta"]["content"].encode() == inner
