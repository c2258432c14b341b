"""What the values of parameters may be."""

from __future__ import annotations

import msgspec
import pytest

from gateway.data_plane.parameters import SAMPLING, TEXTS_OR_TOKENS, check_parameters
from gateway.errors import InvalidRequestError


@pytest.mark.parametrize("name", ["seed", "max_tokens", "n"])
@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63, 2**64, 10**30, -(10**30)])
def test_an_integer_beyond_64_bits_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_parameters({name: msgspec.Raw(str(value).encode())}, SAMPLING)
    assert caught.value.param == name


@pytest.mark.parametrize("value", [-(2**63), 0, 2**63 - 1])
def test_an_integer_of_64_bits_is_taken(value: int) -> None:
    assert check_parameters({"seed": msgspec.Raw(str(value).encode())}, SAMPLING) == {"seed": value}


@pytest.mark.parametrize("value", [b"[9223372036854775808]", b"[[1, 1000000000000000000000]]"])
def test_a_token_beyond_64_bits_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        check_parameters({"input": msgspec.Raw(value)}, {"input": TEXTS_OR_TOKENS})


@pytest.mark.parametrize("value", [b'{"include_usage": 1}', b'{"include_usage": "true"}', b"[]", b"true"])
def test_options_of_a_stream_that_are_none_are_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_parameters({"stream_options": msgspec.Raw(value)}, SAMPLING)
    assert caught.value.param == "stream_options"


@pytest.mark.parametrize("value", [b"{}", b'{"include_usage": null}', b'{"include_obfuscation": false, "other": 1}'])
def test_options_of_a_stream_may_be_others_than_we_know(value: bytes) -> None:
    assert not check_parameters({"stream_options": msgspec.Raw(value)}, SAMPLING)["stream_options"].include_usage
