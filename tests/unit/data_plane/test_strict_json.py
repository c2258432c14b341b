"""What a body may be, against a strict reference built on the standard library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.types import Body
from gateway.data_plane.strict_json import check_number, decode_members
from gateway.errors import InvalidJsonError


def read(raw: bytes) -> Body:
    body = decode_members(raw)
    for name, value in body.items():
        check_number(name, value)
    return body


def refused(raw: bytes) -> str:
    with pytest.raises(InvalidJsonError) as caught:
        read(raw)
    assert caught.value.status == 400
    return caught.value.message


def test_values_are_the_bytes_the_client_sent() -> None:
    body = read(b' {"model" : "m", "x": {"b":1,  "a": [ 1.50 ]}, "t":0.70 }\n')
    assert {name: bytes(value) for name, value in body.items()} == {
        "model": b'"m"',
        "x": b'{"b":1,  "a": [ 1.50 ]}',
        "t": b"0.70",
    }


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"[]", "object, not an array"),
        (b'"x"', "object, not a string"),
        (b"12", "object, not a number"),
        (b"null", "object, not null"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a":1}'.encode("utf-16"), "UTF-16"),
        (b"{\x00}", "UTF-16"),
        (b"{} x", "trailing characters (byte"),
        (b"{}{}", "trailing characters"),
        (b'{"a":1', "ends too early"),
        (b'{"a":1,}', "trailing comma"),
        (b"{'a':1}", "byte 1"),
        (b'{"a":NaN}', "no NaN"),
        (b'{"a":Infinity}', "no NaN and no Infinity"),
        (b'{"a":-Infinity}', "valid JSON"),
        (b'{"a":[NaN]}', "no NaN"),
        (b'{"a":01}', "invalid number"),
        (b'{"a":"\x01"}', "invalid character"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xc0\x80"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"\xff":1}', "not UTF-8"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":"\\udc00"}', "surrogate"),
        (b'{"a":"\\uD83D\\uD83D"}', "surrogate"),
        (b'{"a":[{"b":"\\ud800x"}]}', "surrogate"),
        (b'{"a":1,"a":1}', "'a' stands twice"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        (b'{"a":1,"\\u0061":1}', "'a' stands twice"),
        (b'{"model":"m","messages":[],"model":"n"}', "'model' stands twice"),
        (b'{"a:b": 1, "c": 2, "a:b": 3}', "'a:b' stands twice"),
        (b'{"a\\u003ab": 1, "c": 2, "c": 3}', "'c' stands twice"),
        (b'{"a" : 1, "b":2, "b":3}', "'b' stands twice"),
        (b'{"a":{":":":"}, "b":2, "b":":"}', "'b' stands twice"),
        (b'{"a":1e999}', "1e999 of 'a' is out of range"),
        (b'{"a":-1e999}', "out of range"),
        (b'{"a":9223372036854775808}', "out of range"),
        (b'{"a":-9223372036854775809}', "out of range"),
        (b'{"a":1' + b"0" * 5000 + b"}", "out of range"),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "deeper than 64"),
        (b'{"a":' + b'{"a":' * 64 + b"1" + b"}" * 65, "deeper than 64"),
        (b'{"a":' + b"[" * 100_000, "deeper than 64"),
        (b"[" * 100_000, "object, not an array"),
    ],
)
def test_what_is_no_clear_json_object_is_refused(raw: bytes, said: str) -> None:
    message = refused(raw)
    assert said in message or ("deeper" in said and "ends too early" in message)
    assert len(message) < 300


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"a":"\\ud83d\\ude00 \\\\ud800"}',
        b'{"a":"\\u00e9","b":"\xc3\xa9\xf0\x9f\x98\x80"}',
        b'{"a":9223372036854775807,"b":-9223372036854775808,"c":1e308,"d":-0.0,"e":1E-400}',
        b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
        b'{"a":"' + b"[{" * 500 + b'"}',
        b'{"a":[' + b",".join([b'{"b":[{"c":1}]}'] * 200) + b"]}",
        b'{"a":{"aa":1},"aa":{"a":1}}',
        b'{"a":[1,"a",1,"a"],"b":"\\"a\\":1,\\"a\\":1"}',
        b'{\n  "a": 1,\n  "b": {"a": 1}\n}',
        b'{"a":"\x7f\xe2\x80\xa8"}',
    ],
)
def test_unusual_but_clear_bodies_are_taken(raw: bytes) -> None:
    assert {name: json.loads(bytes(value)) for name, value in read(raw).items()} == json.loads(raw)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text()
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
_names = st.sampled_from(["a", "b", "model", "é", '"', "\\", "\ud800", "\x01"]) | st.text(max_size=3)


@st.composite
def _bodies(draw: st.DrawFn) -> bytes:
    """Bodies that are mostly objects, written in several styles, now and then with a byte changed."""
    pairs = draw(st.lists(st.tuples(_names, _values), max_size=5))
    ascii_only = draw(st.booleans())
    comma, colon, around = draw(st.sampled_from([(",", ":", ""), (", ", ": ", ""), (",\n ", ": ", "\n")]))

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, separators=(comma, colon))

    text = "{" + around + comma.join(f"{dump(name)}{colon}{dump(value)}" for name, value in pairs) + around + "}"
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if draw(st.booleans()) and raw:
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.sampled_from(list(b'"\\{}[],:0e-. \x00\xff')))
    return bytes(raw)


class _RefusedError(Exception):
    pass


def _reference(raw: bytes) -> dict[str, Any] | None:
    """What a body means, or None if it is to be refused."""

    def members(pairs: list[tuple[str, Any]]) -> Any:
        return pairs

    def refuse(_constant: str) -> Any:
        raise _RefusedError

    try:
        text = raw.decode()
        pairs = json.loads(text, object_pairs_hook=tuple, parse_constant=refuse)
    except (ValueError, _RefusedError):
        return None
    if not isinstance(pairs, tuple):
        return None
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names) or _has_surrogate(pairs):
        return None
    if any(type(value) is int and not -(2**63) <= value < 2**63 for _, value in pairs):
        return None
    if any(type(value) is float and value in (float("inf"), float("-inf")) for _, value in pairs):
        return None
    members_: dict[str, Any] = json.loads(text)
    return members_


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return any(0xD800 <= ord(char) <= 0xDFFF for char in value)
    return isinstance(value, list | tuple) and any(_has_surrogate(item) for item in value)


def _agrees_with_the_reference(raw: bytes) -> None:
    expected = _reference(raw)
    try:
        found = read(raw)
    except InvalidJsonError:
        assert expected is None, raw
    else:
        assert expected is not None, raw
        assert {name: json.loads(bytes(value)) for name, value in found.items()} == expected


@given(_bodies())
@settings(max_examples=500, deadline=None)
def test_bodies_are_taken_and_refused_as_the_reference_does(raw: bytes) -> None:
    _agrees_with_the_reference(raw)


@pytest.mark.long
@pytest.mark.timeout(1800)
@given(_bodies())
@settings(max_examples=50_000, deadline=None)
def test_many_bodies_are_taken_and_refused_as_the_reference_does(raw: bytes) -> None:
    _agrees_with_the_reference(raw)
