"""Events that differ in nothing but their text are known by what they share, and told by what is told of one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.stream import read_event
from adapters.stream_pattern import CONTENT, Pattern, Slot, find_pattern
from adapters.types import EventKind

BEFORE = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"'
)
AFTER = b'"},"finish_reason":null}]}\n\n'
THOUGHT = BEFORE.replace(b'"content"', b'"reasoning"')
TOLD = BEFORE.replace(b'"content"', b'"reasoning_content"')
TWICE = Slot(("reasoning", "reasoning_content"), "reasoning_content")


def pattern_of(raw: bytes, told: bytes | None = None, slot: Slot = CONTENT) -> Pattern | None:
    return find_pattern(read_event(raw, raw[6:-2]), raw if told is None else told, slot)


@pytest.fixture
def pattern() -> Pattern:
    pattern = pattern_of(BEFORE + b"word" + AFTER)
    assert pattern is not None
    return pattern


@pytest.mark.parametrize("text", ["another", "w\u00f6rter", r"a\n\"b\"", "\u2028", r"\ud83d\ude00"])
def test_another_text_fits_the_pattern(pattern: Pattern, text: str) -> None:
    raw = BEFORE + text.encode() + AFTER
    assert pattern.told(raw) == raw
    assert pattern.text_bytes == len(text.encode())


@pytest.mark.parametrize(
    "raw",
    [
        BEFORE + AFTER,
        BEFORE + b'a","x":"b' + AFTER,
        BEFORE + b"a\tb" + AFTER,
        BEFORE + b"a\xff" + AFTER,
        BEFORE + rb"\ud83d" + AFTER,
        BEFORE + b"\\" + AFTER,
        BEFORE + b"one" + AFTER + BEFORE + b"two" + AFTER,
        BEFORE + b"word",
        b"word" + AFTER,
        BEFORE.replace(b'"index":0', b'"index":1') + b"word" + AFTER,
        BEFORE + b"word" + AFTER.replace(b"null", b'"stop"'),
        (BEFORE + AFTER)[: len(BEFORE) + 3],
        BEFORE[:-1] + AFTER,
    ],
)
def test_everything_else_has_to_be_read(pattern: Pattern, raw: bytes) -> None:
    assert pattern.told(raw) is None


def test_what_is_told_under_another_name_keeps_its_text_byte_for_byte() -> None:
    pattern = pattern_of(THOUGHT + b"hm" + AFTER, TOLD + b"hm" + AFTER, Slot(("reasoning",), "reasoning_content"))
    assert pattern is not None
    assert pattern.told(THOUGHT + rb"\u00fc\/" + AFTER) == TOLD + rb"\u00fc\/" + AFTER


def test_a_text_that_is_said_twice_is_told_once() -> None:
    def twice(one: bytes, other: bytes) -> bytes:
        return THOUGHT + one + b'","reasoning_content":"' + other + AFTER

    pattern = pattern_of(twice(b"hm", b"hm"), TOLD + b"hm" + AFTER, TWICE)
    assert pattern is not None
    assert pattern.told(twice(b"so", b"so")) == TOLD + b"so" + AFTER
    assert pattern.text_bytes == 2
    for one, other in ((b"a", b"b"), (b"ab", b"c"), (b"", b""), (b'"', b'"'), (b"\xff", b"\xff")):
        assert pattern.told(twice(one, other)) is None
    assert pattern_of(twice(b"a", b"b"), TOLD + b"b" + AFTER, TWICE) is None


def test_what_hides_the_length_of_an_event_may_differ() -> None:
    def padded(text: bytes, padding: bytes) -> bytes:
        return (BEFORE + text + AFTER).replace(b"]}\n\n", b'],"obfuscation":"%b"}\n\n' % padding)

    pattern = pattern_of(padded(b"word", b"aB3"))
    assert pattern is not None
    raw = padded(rb"a\n", b"x")
    assert pattern.told(raw) == raw
    assert pattern.text_bytes == 3
    for text, padding in (
        (b"", b"x"),
        (b'"', b"x"),
        (b"a", b'"'),
        (b"a", b"\\"),
        (b"a", b'b"},"x":{"c'),
        (b"\xff", b"x"),
    ):
        assert pattern.told(padded(text, padding)) is None
    for odd in (padded(b"a", b"x")[:-9], padded(b"a", b"x") + padded(b"b", b"y"), BEFORE + b"a" + AFTER):
        assert pattern.told(odd) is None
    told = padded(b"word", b"aB3").replace(b'"m"', b'"n"')
    rewritten = pattern_of(padded(b"word", b"aB3"), told)
    assert rewritten is not None
    assert rewritten.told(raw) is None
    assert rewritten.told(padded(b"so", b"aB3")) == told.replace(b"word", b"so")


def test_a_watch_sees_each_text_that_is_known_and_may_refuse_it() -> None:
    seen: list[str] = []

    def watch(text: str) -> bool:
        seen.append(text)
        return "<" not in text

    pattern = pattern_of(BEFORE + b"word" + AFTER, slot=Slot(("content",), "content", watch))
    assert pattern is not None
    assert pattern.told(BEFORE + rb"a\n" + AFTER) is not None
    assert pattern.told(BEFORE + b"<" + AFTER) is None
    assert pattern.told(BEFORE + b"b" + AFTER + b" ") is None
    assert seen == ["a\n", "<"]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        pytest.param(BEFORE + b'word","x":{"content":"other"},"y":"' + AFTER, None, id="two members"),
        pytest.param(BEFORE.replace(b'"m"', rb'"\"m"') + b"word" + AFTER, None, id="a hidden quote"),
        pytest.param(BEFORE.replace(b'"m"', rb'"\u006d"') + b"word" + AFTER, None, id="a hidden letter"),
        pytest.param(BEFORE + b"word" + AFTER, BEFORE + b"wor" + AFTER, id="another text"),
        pytest.param(BEFORE + b"word" + AFTER, THOUGHT + b"word" + AFTER, id="no text"),
    ],
)
def test_an_event_that_cannot_be_relied_on_teaches_no_pattern(raw: bytes, told: bytes | None) -> None:
    assert pattern_of(raw, told) is None


@given(st.binary(max_size=12) | st.text(max_size=12).map(str.encode) | st.text().map(lambda t: json.dumps(t).encode()))
def test_what_fits_the_pattern_is_read_as_the_same_text(inner: bytes) -> None:
    pattern = pattern_of(BEFORE + b"word" + AFTER)
    assert pattern is not None
    raw = BEFORE + inner + AFTER
    if pattern.told(raw) is not None:
        event = read_event(raw, raw[6:-2])
        chunk: Any = msgspec.json.decode(event.data)
        assert (event.kind, event.plain, event.text_bytes) == (EventKind.CONTENT, True, pattern.text_bytes)
        assert chunk["choices"][0]["delta"]["content"] == json.loads(b'"%b"' % inner)
