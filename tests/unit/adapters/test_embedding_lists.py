"""Lists of embeddings: what strict clients look for is there, whatever the server left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.answers import UnreadableError
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


def test_what_is_there_stays() -> None:
    data = [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": [1.5]}]
    answer = mended({**SOUND, "data": data})
    assert [one["index"] for one in answer["data"]] == [1, 0]
    assert answer["usage"] == SOUND["usage"]


@pytest.mark.parametrize("data", [[5], [[0.5]], [None]])
def test_what_is_no_list_of_vectors_is_refused(data: Any) -> None:
    with pytest.raises(UnreadableError):
        mended({**SOUND, "data": data})
