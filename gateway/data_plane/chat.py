"""``POST /v1/chat/completions``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from adapters.types import Body, Operation
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
from gateway.data_plane.tool_forms import read_choice, read_tools
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
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_BRACE: Final = ord("{")
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
        _check_format(body, values["response_format"])
    if "tools" in values:
        read_tools(body, values["tools"])
    if "tool_choice" in values:
        read_choice(body, values["tool_choice"])
    # What is in them is the target's business: most take them as they are, and reading 25 kB costs as much again.
    if messages[0] != _BRACKET:
        raise InvalidRequestError("'messages' has to be a list of messages.", param="messages")
    if len(messages) < _SHORTEST_LIST and _EMPTY_LIST.fullmatch(messages):
        raise InvalidRequestError("'messages' is empty; at least one message is needed.", param="messages")


def _check_format(body: Body, wanted: Mapping[str, msgspec.Raw]) -> None:
    """Refuse a schema that is none, as OpenAI does: engines take it for no format at all, or fail.

    Members that are null go no further, as everywhere.
    """
    if wanted.get("type") == _SCHEMA and all(wanted.get(name, NULL) == NULL for name in _SCHEMA_MEMBERS):
        raise InvalidRequestError(
            "Missing required parameter: 'response_format.json_schema'.",
            param="response_format.json_schema",
            code="missing_required_parameter",
        )
    if b"null" in bytes(body["response_format"]):
        body["response_format"] = _without_nulls(wanted)


def _without_nulls(wanted: Mapping[str, msgspec.Raw]) -> msgspec.Raw:
    """*wanted* without members that are null, its own and those beside the schema, which stays as it is."""
    kept = {name: value for name, value in wanted.items() if value != NULL}
    if memoryview(kept.get("json_schema", NULL))[0] == _BRACE:
        members = _decode_members(kept["json_schema"])
        kept["json_schema"] = _raw({name: value for name, value in members.items() if value != NULL})
    return _raw(kept)


def _raw(members: Mapping[str, msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(members))


CHAT: Final = Endpoint("/chat/completions", Operation.CHAT, _read)
