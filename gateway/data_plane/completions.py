"""``POST /v1/completions``, which LlamaIndex and older clients use by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from adapters.types import Operation
from gateway.data_plane.endpoint import Endpoint, read_count, read_stream_options
from gateway.data_plane.parameters import BOOLEAN, SAMPLING, STRING, Check, check_parameters, integer, is_set
from gateway.errors import MissingParameterError

if TYPE_CHECKING:
    from gateway.pipeline.call import Call


def _is_prompt(value: Any) -> bool:
    """A text, texts, token ids, or lists of token ids."""
    if isinstance(value, str):
        return True
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, str) for item in value) or is_tokens(value) or all(is_tokens(item) for item in value)


def is_tokens(value: Any) -> bool:
    """A list of token ids."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value)
    )


TEXTS_OR_TOKENS: Final = Check(_is_prompt, "a string, a list of strings, a list of token ids, or a list of such lists")

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
    check_parameters(body, _CHECKS)
    read_stream_options(call)
    call.output_limit = read_count(body, "max_tokens")
    call.choices = read_count(body, "n") or 1


COMPLETIONS: Final = Endpoint("/completions", Operation.COMPLETIONS, _read)
