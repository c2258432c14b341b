"""Lists of embeddings: what strict clients look for is there, whatever the server left out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from adapters.answers import UnreadableError
from adapters.embeddings import inputs_of
from adapters.types import Operation
from tests.fakes.repaired import repaired_body

SOUND: dict[str, Any] = {
    "object": "list",
    "model": "bge",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 3, "total_tokens": 3},
}


def mended(answer: Any) -> Any:
    return json.loads(repaired_body(json.dumps(answer).encode(), operation=Operation.EMBEDDINGS))


def test_a_sound_list_is_the_same_bytes() -> None:
    body = json.dumps(SOUND, indent=2).encode()
    assert repaired_body(body, operation=Operation.EMBEDDINGS) is body


def test_what_is_missing_is_filled_in() -> None:
    answer = mended({"data": [{"embedding": [0.5]}, {"embedding": [1.5]}]})
    assert (answer["object"], answer["model"]) == ("list", "up")
    assert [(one["object"], one["index"]) for one in answer["data"]] == [("embedding", 0), ("embedding", 1)]
    assert answer["usage"] == {"prompt_tokens": 0, "total_tokens": 0}


def test_vectors_stand_in_the_order_of_their_inputs() -> None:
    data = [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": [1.5]}]
    answer = mended({**SOUND, "data": data})
    assert [(one["index"], one["embedding"]) for one in answer["data"]] == [(0, [1.5]), (1, [0.5])]
    assert answer["usage"] == SOUND["usage"]


def test_a_vector_in_base64_may_hold_the_letters_of_null() -> None:
    answer = {**SOUND, "data": [{"object": "embedding", "index": 0, "embedding": "AAAAnullAAA="}]}
    assert mended(answer) == answer


@pytest.mark.parametrize("places", [[0, 0], [1, 2], [True, False], [None, 0], ["0", "1"]])
def test_places_that_make_no_sense_are_counted_anew(places: list[Any]) -> None:
    data = [{"index": place, "embedding": [float(number)]} for number, place in enumerate(places)]
    answer = mended({**SOUND, "data": data})
    assert [(one["index"], one["embedding"]) for one in answer["data"]] == [(0, [0.0]), (1, [1.0])]


@pytest.mark.parametrize(
    ("given", "count"),
    [('"a"', 1), ('["a"]', 1), ('["a","b"]', 2), ("[1,2,3]", 1), ("[[1],[2,3]]", 2), ('"[1,2]"', 1)],
)
def test_inputs_are_counted_by_what_they_are(given: str, count: int) -> None:
    assert inputs_of({"input": msgspec.Raw(given.encode())}) == count


@pytest.mark.parametrize("data", [[5], [[0.5]], [None]])
def test_what_is_no_list_of_vectors_is_refused(data: Any) -> None:
    with pytest.raises(UnreadableError):
        mended({**SOUND, "data": data})
