"""Embeddings: a vector for each input, the same each time and exact in 32 bits."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from adapters.simulator.refusal import Refusals
from adapters.simulator.tokens import count_tokens

DIMENSIONS: Final = 32

Body = Mapping[str, Any]


def embed(body: Body, lacks: tuple[str, ...], refusals: Refusals) -> dict[str, Any]:
    """The whole answer to *body*; what the endpoint *lacks* has no effect."""
    inputs = _inputs(body.get("input"), refusals)
    size = DIMENSIONS
    if "dimensions" not in lacks and body.get("dimensions") is not None:
        size = body["dimensions"]
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= 4096:
            raise refusals.invalid("'dimensions' : value must be an integer from 1 to 4096", "dimensions")
    packed = body.get("encoding_format") == "base64" and not {"base64", "encoding_format"} & set(lacks)
    rows = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector(one, size), packed)}
        for index, one in enumerate(inputs)
    ]
    used = sum(len(one) if isinstance(one, list) else count_tokens(one) for one in inputs)
    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "data": rows, "model": body["model"], "usage": usage}


def _inputs(value: Any, refusals: Refusals) -> list[Any]:
    inputs = value if isinstance(value, list) else [value]
    if inputs and all(isinstance(one, int) and not isinstance(one, bool) for one in inputs):
        inputs = [inputs]
    if not inputs or not all(_is_input(one) for one in inputs):
        raise refusals.invalid("'input' : value must be a text, a list of tokens, or a list of either", "input")
    return inputs


def _is_input(one: Any) -> bool:
    return bool(one) and (
        isinstance(one, str) or (isinstance(one, list) and all(isinstance(part, int) for part in one))
    )


def vector(one: Any, size: int) -> list[float]:
    """The vector of one input; every number has a short binary form, so that both encodings say the same."""
    numbers: list[float] = []
    block = 0
    while len(numbers) < size:
        digest = hashlib.sha256(f"{block}{json.dumps(one)}".encode()).digest()
        numbers += [(byte - 128) / 128 for byte in digest]
        block += 1
    return numbers[:size]


def _encoded(numbers: list[float], packed: bool) -> list[float] | str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode() if packed else numbers
