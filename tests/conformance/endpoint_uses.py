"""Text completions and embeddings: what is asked for, and what has to come of it wherever they are."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any, Final

from adapters.registry import load_spec
from adapters.types import Operation
from tests.conformance.reading import read
from tests.conformance.rehearsal import Rehearsal

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


async def complete(use: str, stream: bool, rehearsed: Rehearsal, model: str) -> None:
    """Ask for a text completion, and judge what comes of it."""
    members, texts = COMPLETIONS[use]
    provider = rehearsed.backend(model).target.provider
    rehearsed.look(provider)
    answer = await rehearsed.post(
        "/v1/completions", {"model": model, **members, **({"stream": True} if stream else {})}
    )
    seen = rehearsed.look(provider)
    assert seen.refusals == []
    lacks = lacking(provider, Operation.COMPLETIONS)
    if answer.status == 400:
        assert answer.error["code"] == "unsupported_parameter", answer.body
        assert answer.error["param"] in {*members, "model"} - {"max_tokens", "stop"}
        assert use != "a prompt"
        assert seen.bodies == []
        return
    assert answer.status == 200, answer.body
    assert not any(lacks & body.keys() for body in seen.bodies)
    choices = read(answer)["choices"]
    assert texts is None or [choice["text"].strip(" ") for choice in choices] == [text.strip(" ") for text in texts]
    assert all(choice["finish_reason"] in ("stop", "length") for choice in choices)


async def embed(use: str, rehearsed: Rehearsal, model: str) -> None:
    """Ask for embeddings, and judge what comes of it."""
    members, count = EMBEDDINGS[use]
    provider = rehearsed.backend(model).target.provider
    rehearsed.look(provider)
    answer = await rehearsed.post("/v1/embeddings", {"model": model, **members})
    seen = rehearsed.look(provider)
    assert seen.refusals == []
    endpoint = rehearsed.simulators[provider].spec.endpoints.get(Operation.EMBEDDINGS)
    if answer.status == 400:
        assert answer.error["code"] == "unsupported_parameter", answer.body
        here = endpoint is not None and endpoint.available
        assert answer.error["param"] in (members.keys() - {"input"} if here else {"model"})
        if endpoint is None or "dimensions" not in endpoint.unsure:
            assert seen.bodies == []
        return
    assert answer.status == 200, answer.body
    assert not any(lacking(provider, Operation.EMBEDDINGS) & body.keys() for body in seen.bodies)
    vectors = [one["embedding"] for one in answer.json["data"]]
    assert len(vectors) == count
    if members.get("encoding_format") == "base64":
        vectors = [list(struct.unpack(f"<{len(raw) // 4}f", raw)) for raw in map(base64.b64decode, vectors)]
    assert all(isinstance(number, float) for vector in vectors for number in vector)
    assert "dimensions" not in members or len(vectors[0]) == members["dimensions"]


def lacking(provider: str, operation: Operation) -> set[str]:
    """The parameters that the file says the endpoint lacks."""
    endpoint = load_spec(provider).endpoints.get(operation)
    lacks = set(endpoint.lacks) if endpoint is not None else set()
    return lacks | {"encoding_format"} if "base64" in lacks else lacks
