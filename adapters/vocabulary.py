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


class PartSupport(StrEnum):
    """What a provider does with one type of content part."""

    NATIVE = "native"
    CONDITIONAL = "conditional"  # by models made for it
    BYTES = "bytes"  # only as data: URI or base64; what stands at an address has to be fetched first
    ABSENT = "absent"


class Kind(StrEnum):
    """Where a provider runs."""

    HOSTED = "hosted"
    ENGINE = "engine"
    IN_PROCESS = "in_process"  # a child of the gateway


class Patch(StrEnum):
    """What the gateway does about a difference; the closed list of words for ``patch``.

    A word says what is done, never how strictly: that follows from the class of the parameter and from what the
    client asked for by ``unsupported``. Bounds, other names and forms need no word; their own keys say it all.
    """

    # Leaving out and refusing.
    STRIP = "strip"  # leave out, and say so
    ERROR = "error"  # another target that has it, else 400 unsupported_parameter
    DROP_FIRST = "drop_first"  # of a conflict: leave out the first name in ``when``
    DROP_EMPTY_LIST = "drop_empty_list"  # leave out a list with nothing in it
    # Another way to say it.
    FOLD_INTO_USER = "fold_into_user"  # the value goes in ``user``, where that is free
    SEND_LIMIT = "send_limit"  # always send a limit for the answer: the server's own is too low, or reserves too much
    SEND_BOOLEAN = "send_boolean"  # "true" and "false" in quotes become what they mean
    SET_LOGPROBS = "set_logprobs"  # logprobs: true when only top_logprobs was sent
    REWRITE_SCHEMA = "rewrite_schema"  # into the ``dialect`` of response_format.json_schema
    CLEAN_TOOLS = "clean_tools"  # without ``strict``, legacy definitions inlined
    REASONING_PARSED = "reasoning_parsed"  # reasoning_format: parsed
    DISABLE_THINKING = "disable_thinking"  # send what ``reasoning.off`` says
    # Several calls, or another one.
    FAN_OUT = "fan_out"  # n requests, merged
    TWO_PHASE = "two_phase"  # a tool turn without the format, then the format without tools
    FAKE_STREAM = "fake_stream"  # call without streaming, answer with chunks
    EMULATE_TOOLS = "emulate_tools"  # a schema-bound answer that holds a call or the text
    EMULATE_FORCED_TOOL = "emulate_forced_tool"  # a schema-bound answer, wrapped as a call
    REQUIRE_NAMED_TOOL = "require_named_tool"  # "required", with only that tool in the list
    EMULATE_SCHEMA = "emulate_schema"  # the schema in the prompt, the answer validated, one repair
    # What the answer needs.
    CLIENT_SIDE_STOP = "client_side_stop"  # send what fits, watch the text for the rest
    KEEP_FIRST_CALL = "keep_first_call"  # of several tool calls
    VALIDATE_SCHEMA = "validate_schema"  # sent as is; whether the answer fits is checked, for it may not
    SALVAGE_TOOL_CALL = "salvage_tool_call"  # read the call out of the error once, then retry
    # Messages.
    MAP_TO_SYSTEM = "map_to_system"  # the developer role
    MAP_TO_USER = "map_to_user"  # a system message in the middle of a conversation
    PREFIX_CONTENT = "prefix_content"  # the speaker's name goes in front of the text


EMULATIONS = frozenset({
    Patch.FAN_OUT, Patch.TWO_PHASE, Patch.FAKE_STREAM, Patch.EMULATE_TOOLS, Patch.EMULATE_FORCED_TOOL,
    Patch.REQUIRE_NAMED_TOOL, Patch.EMULATE_SCHEMA, Patch.CLIENT_SIDE_STOP, Patch.KEEP_FIRST_CALL,
})  # fmt: skip
"""Patches that give a client what the provider, or one of its models, does not have."""


class Form(StrEnum):
    """The one kind of JSON a provider takes where OpenAI takes several."""

    ARRAY = "array"  # a string becomes a list of one
    COUNT = "count"  # ``logprobs`` as the number of alternatives: max(1, top_logprobs)
    UNSIGNED = "unsigned"  # a whole number from 0; the sign is taken off


class LogprobsShape(StrEnum):
    """How log probabilities come back; OpenAI's is ``content: [{token, logprob, bytes, top_logprobs}]``."""

    OPENAI = "openai"
    ARRAYS = "arrays"  # {tokens, token_logprobs, top_logprobs: [{token: logprob}]}, side by side
    CONTENT_IDS = "content_ids"  # content: [{id, logprob}]; with alternatives [{id, token, logprob, top_logprobs}]
    FLOAT = "float"  # one number a chunk


class SchemaPlace(StrEnum):
    """Where in ``response_format`` a JSON schema stands."""

    OPENAI = "json_schema.schema"  # {type: json_schema, json_schema: {name, schema, strict}}
    VALUE = "value"  # {type: json_schema, value: schema}
    JSON_OBJECT = "json_object.schema"  # {type: json_object, schema: schema}


class MessageRule(StrEnum):
    """An order or completeness of messages that the provider insists on."""

    ANSWERED_AT_ONCE = "each_tool_call_id_answered_immediately"
    NO_ORPHANS = "no_orphan_tool_messages"
    UNIQUE_IDS = "unique_tool_call_ids"
    CHOICE_NEEDS_TOOLS = "tool_choice_requires_tools"
    STRICT_ALIKE = "all_tools_strict_or_none"
    NEEDS_CONTENT = "non_assistant_needs_content"
    ONE_TRAILING_ASSISTANT = "at_most_one_trailing_assistant"
    ASSISTANT_AFTER_TOOL = "assistant_between_tool_and_user"
    ALTERNATING = "user_and_assistant_alternate"
    USER_FIRST = "conversation_begins_with_user"
    NOT_ASSISTANT_LAST = "conversation_does_not_end_with_assistant"


class ToolCallIds(StrEnum):
    """What the id of a tool call has to look like."""

    NINE_ALPHANUMERIC = "nine_alphanumeric"  # nine letters and digits


class Overflow(StrEnum):
    """What happens to a request that does not fit the context."""

    ERROR = "error"  # refused
    CUTS_PROMPT = "cuts_prompt"  # silently: the start of the prompt is lost
    LOWERS_LIMIT = "lowers_limit"  # silently: the answer is cut to what room is left


class UsagePlace(StrEnum):
    """Where a stream tells its usage."""

    OWN_CHUNK = "own_chunk"  # after the choices, with ``choices: []``
    FINISH_CHUNK = "finish_chunk"  # on the chunk with the finish reason
    NEVER = "never"


class FinishReason(StrEnum):
    """OpenAI's five, and the one that is none: the answer failed."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    FUNCTION_CALL = "function_call"
    ERROR = "error"


class Envelope(StrEnum):
    """The shapes of an error body."""

    OPENAI = "openai"  # {error: {message, type, param, code}}
    INTEGER_CODE = "integer_code"  # {error: {message, type, param, code: 400}}
    NESTED_OBJECT = "nested_object"  # {error: {object: error, type, code, message}}
    FLAT = "flat"  # {message, type, param, code}
    FLAT_OBJECT = "flat_object"  # {object: error, message, type, param, code: 400}
    ERROR_TYPE = "error_type"  # {error: text, error_type}
    DETAIL = "detail"  # {detail: text or list}
    STRING = "string"  # {error: text}


class ResetFormat(StrEnum):
    """How a header says when a limit is fresh again."""

    GO_DURATION = "go_duration"  # 2m59.56s
    FLOAT_SECONDS = "float_seconds"  # 11.382867097854614
    SECONDS = "seconds"  # 12


class Verified(StrEnum):
    """How well a file's facts are known to hold."""

    RUN = "run"  # a real one was run beside the gateway
    SIMULATOR = "simulator"  # against a simulator made from sources other than the file
    DOCUMENTED = "documented"  # read in its documentation or code
    ASSUMED = "assumed"  # from what it is built on


class PriceList(StrEnum):
    """Price lists of others that the snapshot of prices is made from and checked against."""

    LITELLM = "litellm"
    GENAI_PRICES = "genai_prices"


class ModelStatus(StrEnum):
    PRODUCTION = "production"
    PREVIEW = "preview"
    DEPRECATED = "deprecated"
    RETIRED = "retired"
    VERIFY = "verify"  # sources disagree on whether it is still served


PARAMETERS = frozenset({
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities",
    "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort",
    "response_format.ebnf", "response_format.grammar", "response_format.json_object", "response_format.json_schema",
    "response_format.regex", "response_format.structural_tag", "response_format.text", "safety_identifier", "seed",
    "service_tier", "stop", "store", "stream", "stream_options.include_usage", "temperature", "tool_choice", "tools",
    "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
})  # fmt: skip
"""The chat parameters a file may have an entry for; dotted names are parts of a parameter's object."""

EXTENSIONS = frozenset({
    "response_format.ebnf", "response_format.grammar", "response_format.regex", "response_format.structural_tag",
})  # fmt: skip
"""Those of `PARAMETERS` that OpenAI does not have, so that a file may leave them out."""

ENDPOINTS = frozenset({
    "alignments", "anthropic_messages", "audio_speech", "audio_transcriptions", "audio_translations", "audio_voices",
    "batches", "chat_batch", "chat_completions", "completions", "edits", "embeddings", "files", "image_edits",
    "images", "models", "moderations", "realtime", "rerank", "responses", "score", "speech_live",
    "transcription_batches", "transcription_details", "transcription_live", "videos",
})  # fmt: skip
"""The operations a file may have an entry for."""

FROM_TRANSPORT = "transport"
"""The source of an entry that follows from what the provider does with unknown fields."""

FROM_CONFIG = "config"
"""The source of an entry the operator's own configuration brought in."""
