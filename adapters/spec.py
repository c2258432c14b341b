"""What is known about a provider: the shape of the files in `providers/`, checked when one is read.

Typed keys are those the code acts on. What only explains (limits of a free plan, how a quirk was seen) stands under
``facts``, so that a misspelt key can never pass for a remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adapters.types import FailureKind
from adapters.validation import did_you_mean


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


def _as_tuple(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


def _parameter(name: str) -> str:
    if name not in PARAMETERS:
        raise ValueError(f"'{name}' is not a parameter.{did_you_mean(name, PARAMETERS)}")
    return name


ParamName = Annotated[str, AfterValidator(_parameter)]
Statuses = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Confidence = Literal[1, 2, "contested"]
"""2: two sources agree; 1: one source; contested: they differ, and the cautious side was taken."""


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    conf: Confidence | None = None
    src: tuple[str, ...] = ()
    note: str | None = None
    facts: Mapping[str, Any] = Field(default_factory=dict)


class Entry(_Fact):
    """Support for something, and what to do about it."""

    support: Support
    patch: Patch | None = None
    status: int | None = None
    message_like: str | None = None


class ParamSpec(Entry):
    """One request parameter."""

    to: str | None = None
    """Its name there."""
    map: Mapping[str, str] = Field(default_factory=dict)
    """Values to send in place of others."""
    response_map: Mapping[str, str] = Field(default_factory=dict)
    values: tuple[str, ...] = ()
    min: float | None = None
    min_exclusive: float | None = None
    max: float | None = None
    max_items: int | None = None
    by_model: Mapping[str, tuple[str, ...] | str] = Field(default_factory=dict)
    """Canonical model name, or a prefix of it, to the values it takes or a remark."""
    models: tuple[str, ...] = ()
    """The only models that have it natively."""
    requires: str | None = None
    flag: str | None = None
    """The server's command line option that decides."""
    env: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.src:
            raise ValueError(f"'src' is missing; '[{FROM_TRANSPORT}]' when it follows from unknown_body_fields")
        if self.support is Support.RENAMED and not (self.to or self.map or self.patch):
            raise ValueError("'renamed' needs 'to', 'map' or 'patch'")
        return self


class AuthSpec(_Fact):
    """How the provider's key is sent."""

    header: str = "Authorization"
    scheme: str = "Bearer"
    env: str | None = None
    """The environment variable its own documentation uses."""
    optional: bool = False
    key_prefix: str | None = None
    flag: str | None = None

    def header_value(self, key: str) -> str:
        """The header's value for *key*."""
        return f"{self.scheme} {key}" if self.scheme else key


class HealthSpec(_Fact):
    """A cheap request that tells whether a self-hosted engine is up; *path* is relative to the origin."""

    path: str


class UnknownFieldsSpec(_Fact):
    """What a field the provider does not know does: ``rejected`` means that only known ones may be sent."""

    support: Support
    status: int | None = None
    code: str | None = None
    message_like: str | None = None


class TransportSpec(_Fact):
    """Where and how to reach the provider."""

    base_url: str | None = None
    alt_base_url: str | None = None
    auth: AuthSpec = AuthSpec()
    health: HealthSpec | None = None
    request_id_header: str | None = None
    keep_alive: bool = True
    """False: it drops kept-alive connections, so each request takes a fresh one."""
    unknown_body_fields: UnknownFieldsSpec


class EndpointSpec(_Fact):
    """One operation; *path* is relative to the base URL."""

    support: Support
    path: str | None = None
    lacks: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether a request may be sent at all."""
        return self.path is not None and self.support in (Support.NATIVE, Support.LIMITED, Support.CONDITIONAL)


class ReasoningReplaySpec(_Fact):
    """The field of an earlier assistant turn that may carry its reasoning back; anything else is stripped."""

    field: str | None = None
    alias: str | None = None
    reject: str | None = None


class MessagesSpec(_Fact):
    """What a message may hold."""

    roles: tuple[str, ...] = ()
    developer_role: Entry | None = None
    name: Entry | None = None
    content_parts: Mapping[str, Support] = Field(default_factory=dict)
    assistant_reasoning_in: ReasoningReplaySpec | None = None
    null_fields: Entry | None = None
    empty_tool_calls: Entry | None = None
    cache_control: Entry | None = None
    mid_conversation_system: Entry | None = None
    media_options: Entry | None = None
    rules: tuple[str, ...] = ()


class ConflictSpec(_Fact):
    """A combination the provider refuses."""

    when: tuple[str, ...]
    result: int | str
    code: str | None = None
    message_like: str | None = None
    patch: Patch | None = None


class ReasoningSpec(_Fact):
    """Where reasoning text comes back."""

    out_field: str | None = None
    stream_field: str | None = None
    alt_stream_field: str | None = None
    history_param: str | None = None


class StreamingSpec(_Fact):
    """How a stream ends, and where its usage stands."""

    done_marker: str | None = None
    usage_field: str | None = None
    """Where usage stands when it is not the chunk's own ``usage``."""


class UsageSpec(_Fact):
    """Usage fields beyond OpenAI's."""

    extensions: tuple[str, ...] = ()
    time_unit: Literal["seconds", "milliseconds"] | None = None


class FinishReasonSpec(_Fact):
    """The finish reasons seen, and what those that OpenAI does not have mean."""

    values: tuple[str, ...] = ()
    nonstandard: Mapping[str, str] = Field(default_factory=dict)


class ErrorCaseSpec(_Fact):
    """One way the provider says no. What is set has to agree with the answer for the case to apply."""

    case: str
    status: Statuses
    type: Words = ()
    code: str | None = None
    param: str | None = None
    message_like: str | None = None
    """The message as it was seen, numbers and all; for people and for the simulator."""
    match: tuple[str, ...] = ()
    """Phrases of the message, in lower case; one of them occurring is enough."""
    kind: FailureKind | None = None
    """What it means, where the status alone would say something else or too little."""
    patch: Patch | None = None


class ErrorsSpec(_Fact):
    """The shape of an error body, and the cases known."""

    envelope: str | None = None
    cases: tuple[ErrorCaseSpec, ...] = ()


class RateLimitHeadersSpec(_Fact):
    """The headers that tell what is left."""

    headers: tuple[str, ...] = ()
    reset_format: Literal["go_duration", "float_seconds", "seconds"] | None = None


class ModelStatus(StrEnum):
    PRODUCTION = "production"
    PREVIEW = "preview"
    DEPRECATED = "deprecated"
    RETIRED = "retired"
    VERIFY = "verify"  # sources disagree on whether it is still served


class ModelSpec(_Fact):
    """A model the provider serves; prices in USD per million tokens as of the file's date."""

    id: str
    canonical: str
    context_window: int | None = Field(default=None, alias="ctx")
    max_output_tokens: int | None = Field(default=None, alias="max_out")
    input: Decimal | None = Field(default=None, alias="in")
    output: Decimal | None = Field(default=None, alias="out")
    cached_input: Decimal | None = Field(default=None, alias="cached_in")
    vision: bool = False
    status: ModelStatus = ModelStatus.PRODUCTION
    retired_on: date | None = None

    @property
    def offered(self) -> bool:
        """Whether it may be offered to clients unasked: in production, and priced by the token."""
        return self.status is ModelStatus.PRODUCTION and self.input is not None


class ProviderSpec(_Fact):
    """Everything one provider file says."""

    schema_: Literal[1] = Field(alias="schema")
    id: str
    name: str
    kind: Kind
    as_of: date
    inherits: str | None = None
    transport: TransportSpec
    endpoints: Mapping[str, EndpointSpec]
    messages: MessagesSpec = MessagesSpec()
    params: Mapping[ParamName, ParamSpec] = Field(default_factory=dict)
    defaults: Mapping[str, int | float] = Field(default_factory=dict)
    """Sent for parameters the client leaves out, because the provider's own defaults are not OpenAI's."""
    extra_params: tuple[str, ...] = ()
    conflicts: tuple[ConflictSpec, ...] = ()
    reasoning: ReasoningSpec = ReasoningSpec()
    streaming: StreamingSpec = StreamingSpec()
    usage: UsageSpec = UsageSpec()
    finish_reason: FinishReasonSpec = FinishReasonSpec()
    errors: ErrorsSpec = ErrorsSpec()
    rate_limit_headers: RateLimitHeadersSpec = RateLimitHeadersSpec()
    models: tuple[ModelSpec, ...] = ()
    sources: Mapping[str, str] = Field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ProviderSpec({self.id!r})"

    @property
    def hosted(self) -> bool:
        return self.kind is Kind.HOSTED

    def with_overrides(self, overrides: Mapping[str, Any]) -> ProviderSpec:
        """These facts with *overrides* laid over them; raises pydantic's ``ValidationError`` when they do not fit.

        Mappings are merged, but an entry of ``params`` is replaced as a whole, and so is a list.
        """
        if not overrides:
            return self
        base = self.model_dump(by_alias=True, exclude_unset=True)
        return ProviderSpec.model_validate(merge(base, with_config_source(overrides)))


OVERRIDABLE = frozenset({
    "transport", "endpoints", "messages", "params", "defaults", "extra_params", "conflicts", "reasoning", "streaming",
    "usage", "finish_reason", "errors", "rate_limit_headers",
})  # fmt: skip
"""The keys of a provider file that ``overrides`` may hold."""


def merge(base: Mapping[str, Any], over: Mapping[str, Any], *, depth: int = 0) -> dict[str, Any]:
    """*over* laid over *base*: mappings merge down to the entries of a section, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        nested = isinstance(old, Mapping) and isinstance(value, Mapping)
        is_param = depth == 1 and "support" in (value if isinstance(value, Mapping) else ())
        merged[key] = merge(old, value, depth=depth + 1) if nested and not is_param and old is not None else value
    return merged


def with_config_source(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """*overrides* with the operator's configuration as the source of parameters that name none."""
    params = overrides.get("params")
    if not isinstance(params, Mapping):
        return dict(overrides)
    sourced = {
        name: {"src": (FROM_CONFIG,), **entry} if isinstance(entry, Mapping) else entry
        for name, entry in params.items()
    }
    return {**overrides, "params": sourced}
