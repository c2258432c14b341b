"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from adapters.types import Operation
from gateway.data_plane.endpoint import Endpoint, read_count, read_stream_options
from gateway.data_plane.parameters import (
    BOOLEAN,
    LOGPROBS,
    OBJECT,
    SAMPLING,
    STRING,
    STRING_OR_OBJECT,
    TOOLS,
    Check,
    check_parameters,
    integer,
)
from gateway.errors import InvalidRequestError, MissingParameterError

if TYPE_CHECKING:
    from gateway.pipeline.call import Call

_CHECKS: Final[Mapping[str, Check]] = {
    **SAMPLING,
    "max_completion_tokens": integer(1),
    "logprobs": LOGPROBS,
    "top_logprobs": integer(0, 20),
    "tools": TOOLS,
    "tool_choice": STRING_OR_OBJECT,
    "parallel_tool_calls": BOOLEAN,
    "response_format": OBJECT,
    "metadata": OBJECT,
    "store": BOOLEAN,
    "service_tier": STRING,
    "prompt_cache_key": STRING,
    "safety_identifier": STRING,
}


def _read(call: Call) -> None:
    body = call.body
    messages = body.get("messages")
    if messages is None or bytes(messages) == b"null":
        raise MissingParameterError("messages")
    check_parameters(body, _CHECKS)
    # What is in them is the target's business: most take them as they are, and reading 25 kB costs as much again.
    if bytes(messages)[:1] != b"[":
        raise InvalidRequestError("'messages' has to be a list of messages.", param="messages")
    if bytes(messages)[1:].lstrip()[:1] == b"]":
        raise InvalidRequestError("'messages' is empty; at least one message is needed.", param="messages")
    read_stream_options(call)
    call.output_limit = read_count(body, "max_completion_tokens", "max_tokens")
    call.choices = read_count(body, "n") or 1


CHAT: Final = Endpoint("/chat/completions", Operation.CHAT, _read)
