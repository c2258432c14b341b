"""The closed lists of words a provider file is written in."""

from __future__ import annotations

from enum import StrEnum


class Support(StrEnum):
    """What a provider does with something a client may send."""

    NATIVE = "native"  # send as is
    IGNORED = "ignored"  # accepted, without effect
    REJECTED = "rejected"  # answered with a 4xx
    RENAMED = "renamed"  # under another name or with other values
    LIMITED = "limited"  # within bounds
    CONDITIONAL = "conditional"  # depends on the model or on how the server was started
    ABSENT = "absent"
    UNKNOWN = "unknown"  # not verified: never rely on it


class Kind(StrEnum):
    """Where a provider runs."""

    HOSTED = "hosted"
    ENGINE = "engine"
    IN_PROCESS = "in_process"  # a child of the gateway


class Patch(StrEnum):
    """What the gateway does about a difference; the closed list of words for ``patch``."""

    STRIP = "strip"  # remove, and say so
    DROP_WITH_WARNING = "drop_with_warning"  # the same, but refused in strict mode
    ERROR = "error"  # 400 unsupported_parameter
    REROUTE_OR_ERROR = "reroute_or_error"  # another target that has it, else the same 400
    CLAMP_OR_REROUTE = "clamp_or_reroute"
    KEEP_ONE = "keep_one"  # of several that exclude each other
    DROP_FIRST = "drop_first"  # the first name in the conflict's ``when``
    DROP_EMPTY_LIST = "drop_empty_list"
    WRAP_STRING = "wrap_string"  # a string becomes a list of one
    FOLD_INTO_USER = "fold_into_user"
    FAN_OUT = "fan_out"  # n requests, merged
    TWO_PHASE = "two_phase"  # a tool turn without the format, then the format without tools
    FAKE_STREAM = "fake_stream"  # call without streaming, answer with chunks
    CLIENT_SIDE_STOP = "client_side_stop"  # send what fits, watch the text for the rest
    EMULATE_FORCED_TOOL = "emulate_forced_tool"  # a schema-bound answer, wrapped as a call
    REQUIRE_NAMED_TOOL = "require_named_tool"  # "required", with only that tool in the list
    EMULATE_SCHEMA = "emulate_schema"  # the schema as a tool or in the prompt, validated
    REWRITE_SCHEMA = "rewrite_schema"  # into the provider's dialect
    CLEAN_TOOLS = "clean_tools"  # without ``strict``, legacy definitions inlined
    TRANSFORM_LOGPROBS = "transform_logprobs"  # request and answer have another shape
    SET_LOGPROBS = "set_logprobs"  # logprobs: true when only top_logprobs was sent
    MAP_TO_SYSTEM = "map_to_system"  # the developer role
    PREFIX_CONTENT = "prefix_content"  # the speaker's name goes in front of the text
    CONTEXT_ERROR = "context_error"  # ask for an error instead of silent truncation
    REASONING_PARSED = "reasoning_parsed"  # reasoning_format: parsed
    DISABLE_THINKING = "disable_thinking"
    LOWEST_EFFORT = "lowest_effort"
    SEND_BOOLEAN = "send_boolean"
    SALVAGE_TOOL_CALL = "salvage_tool_call"  # read the call out of the error once, then retry


class ModelStatus(StrEnum):
    PRODUCTION = "production"
    PREVIEW = "preview"
    DEPRECATED = "deprecated"
    RETIRED = "retired"
    VERIFY = "verify"  # sources disagree on whether it is still served


PARAMETERS = frozenset({
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities",
    "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort",
    "response_format.grammar", "response_format.json_object", "response_format.json_schema",
    "response_format.regex", "response_format.structural_tag", "response_format.text", "safety_identifier", "seed",
    "service_tier", "stop", "store", "stream", "stream_options.include_usage", "temperature", "tool_choice", "tools",
    "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
})  # fmt: skip
"""The chat parameters a file may have an entry for; dotted names are parts of a parameter's object."""

FROM_TRANSPORT = "transport"
"""The source of an entry that follows from what the provider does with unknown fields."""

FROM_CONFIG = "config"
"""The source of an entry the operator's own configuration brought in."""
