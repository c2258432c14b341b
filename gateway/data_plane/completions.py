"""``POST /v1/completions``, which LlamaIndex and older clients use by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from adapters.types import Operation
from gateway.data_plane.endpoint import Endpoint, take_generation
from gateway.data_plane.parameters import (
    BOOLEAN,
    SAMPLING,
    STRING,
    TEXTS_OR_TOKENS,
    Check,
    check_parameters,
    integer,
    is_set,
)
from gateway.errors import MissingParameterError

if TYPE_CHECKING:
    from gateway.pipeline.call import Call


_CHECKS: Final[Mapping[str, Check]] = {
    **SAMPLING,
    "prompt": TEXTS_OR_TOKENS,
    "max_tokens": integer(0),  # 0 with echo scores a prompt
    "logprobs": integer(0, 20),
    "echo": BOOLEAN,
    "best_of": integer(1, 20),
    "suffix": STRING,
}


def _read(call: Call) -> None:
    body = call.body
    if not is_set(body, "prompt"):
        raise MissingParameterError("prompt")
    take_generation(call, check_parameters(body, _CHECKS), "max_tokens")


COMPLETIONS: Final = Endpoint("/completions", Operation.COMPLETIONS, _read)
