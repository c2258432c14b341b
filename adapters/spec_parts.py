"""The sections of a provider file, each with the keys it may hold.

Typed keys are those the code acts on. What only explains (limits of a free plan, how a quirk was seen) stands under
``facts``, so that a misspelt key can never pass for a remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adapters.types import FailureKind
from adapters.validation import did_you_mean
from adapters.vocabulary import FROM_TRANSPORT, PARAMETERS, ModelStatus, Patch, Support


def _parameter(name: str) -> str:
    if name not in PARAMETERS:
        raise ValueError(f"'{name}' is not a parameter.{did_you_mean(name, PARAMETERS)}")
    return name


def _as_tuple(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


ParamName = Annotated[str, AfterValidator(_parameter)]
Statuses = Annotated[tuple[int, ...], BeforeValidator(_as_tuple)]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Confidence = Literal[1, 2, "contested"]
"""2: two sources agree; 1: one source; contested: they differ, and the cautious side was taken."""


class Fact(BaseModel):
    """What may be said of anything: how sure it is, where it comes from, and remarks."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True)

    conf: Confidence | None = None
    src: tuple[str, ...] = ()
    note: str | None = None
    facts: Mapping[str, Any] = Field(default_factory=dict)


class Entry(Fact):
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
    hint: str | None = None
    """What helps, for a client that is refused it."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.src:
            raise ValueError(f"'src' is missing; '[{FROM_TRANSPORT}]' when it follows from unknown_body_fields")
        if self.support is Support.RENAMED and not (self.to or self.map or self.patch):
            raise ValueError("'renamed' needs 'to', 'map' or 'patch'")
        return self


class AuthSpec(Fact):
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


class HealthSpec(Fact):
    """A cheap request that tells whether a self-hosted engine is up; *path* is relative to the origin."""

    path: str


class UnknownFieldsSpec(Fact):
    """What a field the provider does not know does: ``rejected`` means that only known ones may be sent."""

    support: Support
    status: int | None = None
    code: str | None = None
    message_like: str | None = None


class TransportSpec(Fact):
    """Where and how to reach the provider."""

    base_url: str | None = None
    alt_base_url: str | None = None
    auth: AuthSpec = AuthSpec()
    health: HealthSpec | None = None
    request_id_header: str | None = None
    keep_alive: bool = True
    """False: it drops kept-alive connections, so each request takes a fresh one."""
    unknown_body_fields: UnknownFieldsSpec


class EndpointSpec(Fact):
    """One operation; *path* is relative to the base URL."""

    support: Support
    path: str | None = None
    lacks: tuple[str, ...] = ()
    hint: str | None = None
    """What helps where it is not there after all."""

    @property
    def available(self) -> bool:
        """Whether a request may be sent at all."""
        return self.path is not None and self.support in (Support.NATIVE, Support.LIMITED, Support.CONDITIONAL)


class ReasoningReplaySpec(Fact):
    """The field of an earlier assistant turn that may carry its reasoning back; anything else is stripped."""

    field: str | None = None
    alias: str | None = None
    reject: str | None = None


class MessagesSpec(Fact):
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


class ConflictSpec(Fact):
    """A combination the provider refuses."""

    when: tuple[str, ...]
    result: int | str
    code: str | None = None
    message_like: str | None = None
    patch: Patch | None = None
    only_after: int | None = None
    """Patch only once the provider has refused the combination with this status: it may well take it."""


class ReasoningSpec(Fact):
    """Where reasoning text comes back."""

    out_field: str | None = None
    stream_field: str | None = None
    alt_stream_field: str | None = None
    history_param: str | None = None


class StreamingSpec(Fact):
    """How a stream ends, and where its usage stands."""

    done_marker: str | None = None
    usage_field: str | None = None
    """Where usage stands when it is not the chunk's own ``usage``."""
    progress_param: str | None = None
    """Set to true, it makes the server report how far it has read the prompt, and so notice that a client has left."""
    progress_field: str | None = None
    """The member that marks such a report, which is nothing for clients."""


class UsageSpec(Fact):
    """Usage fields beyond OpenAI's."""

    extensions: tuple[str, ...] = ()
    per_choice: bool = False
    """A stream tells the usage of each choice by itself, each time with the prompt."""
    time_unit: Literal["seconds", "milliseconds"] | None = None


class FinishReasonSpec(Fact):
    """The finish reasons seen, and what those that OpenAI does not have mean."""

    values: tuple[str, ...] = ()
    nonstandard: Mapping[str, str] = Field(default_factory=dict)


class ErrorCaseSpec(Fact):
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


class ErrorsSpec(Fact):
    """The shape of an error body, and the cases known."""

    envelope: str | None = None
    cases: tuple[ErrorCaseSpec, ...] = ()


class RateLimitHeadersSpec(Fact):
    """The headers that tell what is left."""

    headers: tuple[str, ...] = ()
    reset_format: Literal["go_duration", "float_seconds", "seconds"] | None = None


class ModelSpec(Fact):
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
    lacks: tuple[ParamName, ...] = ()
    """Parameters it cannot honour although the provider takes them; requests that use them are refused."""

    @property
    def offered(self) -> bool:
        """Whether it may be offered to clients unasked: in production, and priced by the token."""
        return self.status is ModelStatus.PRODUCTION and self.input is not None
