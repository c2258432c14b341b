"""The header by which a client says what is to be done about parameters that a target lacks."""

from __future__ import annotations

from typing import Final

from adapters.draft import Unsupported
from gateway.errors import InvalidRequestError

UNSUPPORTED_HEADER: Final = b"x-gateway-unsupported"

_WORDS: Final = {word.value.encode(): word for word in Unsupported}


def read_unsupported(value: bytes) -> Unsupported:
    """What *value* asks for; `InvalidRequestError` naming the words there are for anything else."""
    word = _WORDS.get(value.strip().lower())
    if word is None:
        words = ", ".join(one.value for one in Unsupported)
        raise InvalidRequestError(f"The x-gateway-unsupported header has to be one of: {words}.")
    return word
