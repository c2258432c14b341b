"""``POST /v1/chat/completions``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from adapters.types import Operation
from gateway.data_plane.endpoint import Endpoint, take_generation
from gateway.data_plane.parameters import (
    BOOLEAN,
    LOGPROBS,
    NULL,
    OBJECT,
    SAMPLING,
    STRING,
    STRING_OR_OBJECT,
    TOOLS,
    Check,
    check_parameters,
    integer,
    is_set,
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


_SCHEMA: Final = msgspec.Raw(b'"json_schema"')
_SCHEMA_MEMBERS: Final = ("json_schema", "schema", "value")
"""Where a schema may stand: OpenAI's place, llama.cpp's and TGI's."""
_BRACKET: Final = ord("[")
_EMPTY_LIST: Final = re.compile(rb"\[\s*\]")
_SHORTEST_LIST: Final = len('[{"role":"","content":""}]')


def _read(call: Call) -> None:
    body = call.body
    if not is_set(body, "messages"):
        raise MissingParameterError("messages")
    messages = bytes(body["messages"])
    values = check_parameters(body, _CHECKS)
    take_generation(call, values, "max_completion_tokens", "max_tokens")
    if "response_format" in values:
        _check_format(values["response_format"])
    # What is in them is the target's business: most take them as they are, and reading 25 kB costs as much again.
    if messages[0] != _BRACKET:
        raise InvalidRequestError("'messages' has to be a list of messages.", param="messages")
    if len(messages) < _SHORTEST_LIST and _EMPTY_LIST.fullmatch(messages):
        raise InvalidRequestError("'messages' is empty; at least one message is needed.", param="messages")


def _check_format(wanted: Mapping[str, msgspec.Raw]) -> None:
    """Refuse a schema that is none, as OpenAI does: engines take it for no format at all, or fail."""
    if wanted.get("type") == _SCHEMA and all(wanted.get(name, NULL) == NULL for name in _SCHEMA_MEMBERS):
        raise InvalidRequestError(
            "Missing required parameter: 'response_format.json_schema'.",
            param="response_format.json_schema",
            code="missing_required_parameter",
        )


CHAT: Final = Endpoint("/chat/completions", Operation.CHAT, _read)
