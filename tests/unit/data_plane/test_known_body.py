"""A body that is known again but for its messages is read as if it had not been."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.types import Operation
from gateway.data_plane.chat import CHAT
from gateway.data_plane.endpoint import read_model_name
from gateway.data_plane.known_body import KnownBodies, KnownBody
from gateway.data_plane.strict_json import decode_members
from gateway.errors import GatewayError
from gateway.pipeline.call import Call
from tests.fakes.relayed import Captured

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
PARAMETERS: dict[str, Any] = {
    "temperature": 0.7,
    "max_tokens": 64,
    "n": 2,
    "stream": True,
    "stream_options": {"include_usage": True},
}


def _read(raw: bytes) -> tuple[Call, str]:
    """What *raw* says, read the long way."""
    call = Call(Captured(), Operation.CHAT, 0.0, 0.0)
    call.body = decode_members(raw)
    name = read_model_name(call.body)
    CHAT.read(call)
    return call, name


def _learn(raw: bytes) -> KnownBody | None:
    return KnownBodies().learn(raw, *_read(raw))


def _write(messages: Any = MESSAGES, *, first: bool = False, indent: int | None = None, **parameters: Any) -> bytes:
    members = {"messages": messages, "model": "m", **parameters}
    if not first:
        members = {"model": "m", **parameters, "messages": messages}
    return json.dumps(members, indent=indent, ensure_ascii=False).encode()


def _told(call: Call) -> tuple[object, ...]:
    body = [(name, bytes(value)) for name, value in call.body.items()]
    return body, call.stream, call.wants_usage, call.output_limit, call.choices


def _same(known: KnownBody, raw: bytes) -> bool:
    """Whether *raw* is known; it has to say the same then as the long way finds."""
    call = Call(Captured(), Operation.CHAT, 0.0, 0.0)
    if not known.read(raw, call):
        return False
    alone, name = _read(raw)
    assert _told(call) == _told(alone)
    assert known.model == name
    return True


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_other_messages_with_the_same_parameters_are_known(first: bool, indent: int | None) -> None:
    known = _learn(_write(first=first, indent=indent, **PARAMETERS))
    assert known is not None

    assert _same(known, _write([*MESSAGES, *MESSAGES], first=first, indent=indent, **PARAMETERS))
    if indent is None:
        odd = [{"role": "user", "content": 'ü "quoted" \\ud800 \n'}]
        assert _same(known, _write(odd, first=first, **PARAMETERS))
        assert _same(known, _write(odd, first=first, **PARAMETERS).replace(b"\\n", rb"\ud83d\ude00"))


@pytest.mark.parametrize(
    "messages",
    [
        b'[{"role": "user", "content": "a"}], "temperature": 1, "x": ["aaaaaaaaa"]',
        b'[{"role": "user", "content": "a"}], "messages": [{"role": "user"}]',
        b'[{"role": "user", "content": "\\ud800"}]',
        b'[{"role": "user", "content": "\xff\xff\xff\xff"}]',
        b'[{"role": "user", "content": "a"} ',
        b'{"role": "user", "content": "a", "b": "c"}',
        b' [{"role": "user", "content": "a"}]',
        b'[{"role": "user", "content": "a"}] ',
        b"[" * 65 + b"]" * 65,
        b"[" + b" " * 10 + b"]",
        b'"a string that is longer than a list"',
        b"",
    ],
)
def test_what_is_no_plain_list_of_messages_is_not_known(messages: bytes) -> None:
    known = _learn(b'{"model": "m", "messages": %b, "n": 1}' % json.dumps(MESSAGES).encode())
    assert known is not None

    assert not _same(known, b'{"model": "m", "messages": %b, "n": 1}' % messages)


def test_messages_that_nest_as_deep_as_they_may_are_known() -> None:
    known = _learn(b'{"model": "m", "messages": %b}' % json.dumps(MESSAGES).encode())
    assert known is not None
    deepest = b"[" * 63 + b"]" * 63

    assert _same(known, b'{"model": "m", "messages": %b}' % deepest)
    assert not _same(known, b'{"model": "m", "messages": [%b]}' % deepest)


LIST = b'[{"role":"user","content":"hi"}]'


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model": "m", "x": {"messages": %b}, "messages": %b}' % (LIST, LIST),
        b'{"model": "m", "x": "[]", "messages": %b, "y": %b}' % (LIST, LIST),
        b'{"model": "m", "x": {"messages": 0}, "messages": %b, "y": 1}' % LIST,
        b'{"model": "m", "messages": %b, "user": "%b"}' % (LIST, b"u" * 5000),
        b'{"model": "m", "messages": %b, "stream_options": {}}' % LIST,
        b'{"model": "m", "m\\u0065ssages": %b}' % LIST,
    ],
)
def test_a_body_whose_messages_are_hard_to_find_is_read_rightly_or_not_learnt(raw: bytes) -> None:
    known = _learn(raw)
    if known is not None:
        assert _same(known, raw)
        for old, new in ((LIST, LIST[:-1] + b", 1]"), (b'"messages": [', b'"messages": [7, ')):
            for count in (1, 2):
                _same(known, raw.replace(old, new, count))


def test_connections_share_what_they_know() -> None:
    bodies = KnownBodies()
    raw = _write(**PARAMETERS)

    assert bodies.learn(raw, *_read(raw)) is bodies.learn(raw, *_read(raw)) is not None


_TEXT = st.characters(exclude_categories=["Cs"])
PIECES = (
    b'"',
    b",",
    b":",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\\",
    b" ",
    b'"messages"',
    b'"n": 1',
    b"1",
    b"\xc3\xbc",
    b"\xff",
    b"\\ud83d",
)


@given(
    first=st.booleans(),
    messages=st.lists(
        st.dictionaries(st.sampled_from(["role", "content", "x"]), st.text(_TEXT, max_size=20)), min_size=1
    ),
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.sampled_from(PIECES)), max_size=3),
)
def test_whatever_is_known_says_what_the_long_way_finds(
    first: bool, messages: list[dict[str, str]], edits: list[tuple[int, int, bytes]]
) -> None:
    known = _learn(_write(first=first, temperature=1))
    assert known is not None
    raw = _write(messages, first=first, temperature=1)
    for at, length, piece in edits:
        raw = raw[:at] + piece + raw[at + length :]
    try:
        _same(known, raw)
    except GatewayError as error:  # the long way refuses what was known
        raise AssertionError(raw) from error
