"""The sections of a provider file about answers: reasoning, streams, usage, finish reasons, errors and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from adapters.spec_parts import Fact, Models, Statuses, Words, is_one_of
from adapters.types import FailureKind
from adapters.validation import at, did_you_mean, raise_all
from adapters.vocabulary import Envelope, FinishReason, Patch, ResetFormat, UsagePlace


class ReasoningSpec(Fact):
    """Where reasoning text comes back, and how to have none."""

    out_field: str | None = None
    """None: no field of its own; see ``think_tags``."""
    alt_out_field: str | None = None
    stream_field: str | None = None
    alt_stream_field: str | None = None
    think_tags: bool | Models = False
    """It may stand in the content between ``tags``: true, or the models where it does."""
    tags: Mapping[str, str] = Field(default_factory=lambda: {"<think>": "</think>"})
    """The tags, opening to closing."""
    opens_in_prompt: bool | Models = False
    """The opening tag is part of the prompt, so that the answer begins within it: true, or the models where it is."""
    off: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters that switch it off."""
    off_models: Models = ()
    """The only models with such a switch; empty: all that reason."""

    def tags_for(self, canonical: str) -> Mapping[str, str]:
        """The tags to look for in the text of the model of that canonical name; empty when there are none."""
        found = self.think_tags
        return self.tags if found is True or (found and is_one_of(canonical, found)) else {}

    def opens_for(self, canonical: str) -> bool:
        """Whether the text of the model of that canonical name begins within a tag."""
        opens = self.opens_in_prompt
        return opens if isinstance(opens, bool) else is_one_of(canonical, opens)

    def switch_for(self, canonical: str) -> Mapping[str, Any]:
        """The parameters that stop the model of that canonical name from reasoning; empty when none do."""
        return self.off if not self.off_models or is_one_of(canonical, self.off_models) else {}


class StreamingSpec(Fact):
    """How a stream runs and ends."""

    done_marker: str | None = None
    usage: UsagePlace = UsagePlace.OWN_CHUNK
    usage_unasked: bool = False
    """It comes without ``include_usage``."""
    usage_field: str | None = None
    """Where usage may stand besides the chunk's own ``usage``."""
    usage_object: str | None = None
    """The ``object`` of the usage chunk, where it is another than the other chunks'."""
    error_envelope: Envelope | None = None
    """The shape of an error inside a stream, where it is not that of an error body."""
    error_field: str | None = None
    """Where an error may stand inside an ordinary chunk."""
    error_then_done: bool = False
    """The end marker follows even an error."""
    whole_tool_calls: bool = False
    """A tool call comes in one piece."""
    comments: bool = False
    """Comment lines keep the connection alive while the prompt is read."""
    progress_param: str | None = None
    """Set to true, it makes the server report how far it has read the prompt, and so notice that a client has left."""
    progress_field: str | None = None
    """The member that marks such a report, which is nothing for clients."""


class UsageSpec(Fact):
    """Usage fields beyond OpenAI's."""

    extensions: tuple[str, ...] = ()
    per_choice: bool = False
    """A stream tells the usage of each choice by itself, each time with the prompt."""


class FinishReasonSpec(Fact):
    """The finish reasons seen, and what those that OpenAI does not have mean."""

    values: tuple[str, ...] = ()
    nonstandard: Mapping[str, FinishReason] = Field(default_factory=dict)
    missing: FinishReason | None = None
    """What a last chunk without one means."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        known = {reason.value for reason in FinishReason} - {FinishReason.ERROR} | self.nonstandard.keys()
        unknown = [(place, value) for place, value in enumerate(self.values) if value not in known]
        told = "OpenAI has no '{}': say under 'nonstandard' what it means."
        raise_all(
            type(self),
            [at(("values", place), word, told.format(word) + did_you_mean(word, known)) for place, word in unknown],
        )
        return self


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

    envelope: Envelope = Envelope.OPENAI
    also: tuple[Envelope, ...] = ()
    """Other shapes it has been seen to use: older versions, other routes."""
    cases: tuple[ErrorCaseSpec, ...] = ()


class LimitSpec(Fact):
    """One limit the headers tell of; each key names a header."""

    of: Literal["requests", "tokens", "prompt_tokens", "uncached_prompt_tokens", "generated_tokens"]
    per: Literal["second", "minute", "day"] | None = None
    """The window; None where it is not told."""
    limit: str | None = None
    remaining: str | None = None
    reset: str | None = None


class RateLimitHeadersSpec(Fact):
    """The headers that tell what is left."""

    headers: tuple[str, ...] = ()
    """All of them; clients get none of these."""
    limits: tuple[LimitSpec, ...] = ()
    reset_format: ResetFormat | None = None
