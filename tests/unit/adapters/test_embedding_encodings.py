"""Vectors come in the encoding that was asked for, whichever the server knows."""

from __future__ import annotations

import base64
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.answers import UnreadableError, read_answer
from adapters.embeddings import with_encoding

_FLOATS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8)


def _body(*vectors: Any) -> bytes:
    data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return msgspec.json.encode({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 3}})


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _convert(body: bytes, encoding: str) -> Any:
    return msgspec.json.decode(with_encoding(body, read_answer(body).data, encoding))


@given(st.lists(_FLOATS, min_size=1, max_size=3))
def test_floats_become_base64_and_come_back(vectors: list[list[float]]) -> None:
    packed = _convert(_body(*vectors), "base64")

    assert [item["embedding"] for item in packed["data"]] == [_packed(vector) for vector in vectors]
    again = _convert(msgspec.json.encode(packed), "float")
    assert [item["embedding"] for item in again["data"]] == vectors
    assert again["usage"] == {"prompt_tokens": 3}


@pytest.mark.parametrize(("vector", "encoding"), [([0.5, 1.0], "float"), (_packed([0.5]), "base64")])
def test_an_answer_that_is_right_keeps_its_bytes(vector: Any, encoding: str) -> None:
    body = _body(vector)

    assert with_encoding(body, read_answer(body).data, encoding) is body


def test_an_answer_of_both_encodings_is_made_one() -> None:
    converted = _convert(_body([0.5], _packed([1.5])), "float")

    assert [item["embedding"] for item in converted["data"]] == [[0.5], [1.5]]


@pytest.mark.parametrize("vector", [None, 7, "not base64!", {"a": 1}, ["x"], [1e300]])
def test_what_is_no_vector_is_refused(vector: Any) -> None:
    body = _body(vector)

    with pytest.raises(UnreadableError):
        _convert(body, "base64" if vector != "not base64!" else "float")
