"""Text completions and embeddings at every provider that has them, or can be made to: honoured, or refused and told."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.registry import load_spec
from adapters.types import Operation
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal, rehearsal
from tests.conformance.test_generated import MODELS, PROVIDERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

_TEXT: Final = "Say exactly: one two END three"
_ALL: Final = "one two END three"
COMPLETIONS: Final[Mapping[str, tuple[dict[str, Any], list[str] | None]]] = {
    "a prompt": ({"prompt": _TEXT}, [_ALL]),
    "two prompts": ({"prompt": [_TEXT, _TEXT]}, [_ALL, _ALL]),
    "two choices": ({"prompt": _TEXT, "n": 2}, [_ALL, _ALL]),
    "a stop": ({"prompt": _TEXT, "stop": ["END"]}, ["one two "]),
    "five stops": ({"prompt": _TEXT, "stop": ["1", "2", "3", "4", "END"]}, ["one two "]),
    "a limit": ({"prompt": _TEXT, "max_tokens": 64}, [_ALL]),
    "an echo": ({"prompt": _TEXT, "echo": True}, None),
    "a suffix": ({"prompt": _TEXT, "suffix": "end"}, None),
    "the best of two": ({"prompt": _TEXT, "best_of": 2}, None),
    "log probabilities": ({"prompt": _TEXT, "logprobs": 1}, [_ALL]),
    "sampling": ({"prompt": _TEXT, "temperature": 0.3, "top_p": 0.5, "seed": 3, "user": "u"}, [_ALL]),
}
EMBEDDINGS: Final[Mapping[str, tuple[dict[str, Any], int]]] = {
    "a text": ({"input": "a"}, 1),
    "texts": ({"input": ["a", "b"]}, 2),
    "tokens": ({"input": [1, 2, 3]}, 1),
    "numbers": ({"input": "a", "encoding_format": "float"}, 1),
    "text of numbers": ({"input": ["a", "b"], "encoding_format": "base64"}, 2),
    "few dimensions": ({"input": "a", "dimensions": 8}, 1),
    "a user": ({"input": "a", "user": "u"}, 1),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rehearsed() -> AsyncIterator[Rehearsal]:
    async with rehearsal(MODELS) as running:
        yield running


@pytest.mark.parametrize("use", COMPLETIONS)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_text_completion(rehearsed: Rehearsal, provider: str, use: str) -> None:
    members, texts = COMPLETIONS[use]
    for stream in ({}, {"stream": True}):
        rehearsed.look(provider)
        answer = await rehearsed.post("/v1/completions", {"model": provider, **members, **stream})
        assert rehearsed.look(provider).refusals == []
        if answer.status == 400:
            assert answer.error["code"] == "unsupported_parameter", answer.body
            assert answer.error["param"] in {*members, "model"} - {"max_tokens", "stop"}
            assert use != "a prompt"
            continue
        assert answer.status == 200, answer.body
        choices = read(answer)["choices"]
        assert texts is None or [choice["text"].strip(" ") for choice in choices] == [text.strip(" ") for text in texts]
        assert all(choice["finish_reason"] in ("stop", "length") for choice in choices)


@pytest.mark.parametrize("use", EMBEDDINGS)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_embeddings(rehearsed: Rehearsal, provider: str, use: str) -> None:
    members, count = EMBEDDINGS[use]
    rehearsed.look(provider)
    answer = await rehearsed.post("/v1/embeddings", {"model": provider, **members})
    assert rehearsed.look(provider).refusals == []
    endpoint = load_spec(provider).endpoints.get(Operation.EMBEDDINGS)
    if answer.status == 400:
        assert answer.error["code"] == "unsupported_parameter", answer.body
        here = endpoint is not None and endpoint.available
        assert answer.error["param"] in (members.keys() - {"input"} if here else {"model"})
        return
    assert answer.status == 200, answer.body
    vectors = [one["embedding"] for one in answer.json["data"]]
    assert len(vectors) == count
    if members.get("encoding_format") == "base64":
        vectors = [list(struct.unpack(f"<{len(raw) // 4}f", raw)) for raw in map(base64.b64decode, vectors)]
    assert all(isinstance(number, float) for vector in vectors for number in vector)
    assert "dimensions" not in members or len(vectors[0]) == members["dimensions"]
