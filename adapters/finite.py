"""JSON with numbers that JSON does not have, as Python's own encoder writes them: read, and said as OpenAI would."""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

_NO_NUMBER: Final = re.compile(rb"\b(?:NaN|Infinity)\b")
# They come in log probabilities, of tokens that a grammar or the sampler rules out (sgl-project/sglang#4097), for
# which OpenAI writes -9999.0. What else there may be is a speed, which nobody can read anyway.
_IN_THEIR_PLACE: Final = {"NaN": -9999.0, "-Infinity": -9999.0, "Infinity": None}


def with_finite_numbers(data: bytes) -> bytes | None:
    """*data* as JSON, where it is that but for ``NaN`` and ``Infinity``; None where it is broken otherwise."""
    if not _NO_NUMBER.search(data):
        return None
    try:
        return msgspec.json.encode(json.loads(data, parse_constant=_IN_THEIR_PLACE.__getitem__))
    except (ValueError, RecursionError):
        return None
