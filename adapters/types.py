"""The words that adapters, policies and the pipeline share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

# A request body decoded one level deep: parameter name to the bytes of its value as the client sent them.
Body = dict[str, msgspec.Raw]


class Operation(StrEnum):
    """What a client asks a model to do; the value is a key of ``endpoints`` in a provider file."""

    CHAT = "chat_completions"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"


class FailureKind(StrEnum):
    """Why an attempt failed. Retry and fallback read only this (decision 26 and the status map)."""

    CONNECT = "connect"  # refused, unreachable or reset before anything was sent
    DNS = "dns"
    TLS = "tls"
    CONNECT_TIMEOUT = "connect_timeout"
    RESET = "reset"  # the connection broke before the first content
    FIRST_CONTENT_TIMEOUT = "first_content_timeout"
    STALLED = "stalled"  # no content for the stall limit
    TOTAL_TIMEOUT = "total_timeout"
    INTERRUPTED = "interrupted"  # the answer broke off after content
    MALFORMED = "malformed"  # not HTTP, not JSON, or too many unreadable events
    TOO_LARGE = "too_large"  # an answer, event or header block past its limit
    WRONG_CONTENT_TYPE = "wrong_content_type"
    BAD_ENCODING = "bad_encoding"  # compressed against our wish, and past the bounds
    REDIRECT = "redirect"
    EMPTY = "empty"  # a 200 without an answer in it
    INVALID_OUTPUT = "invalid_output"  # an answer that does not keep to the schema asked for
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"  # 503, 529 and the like
    SERVER_ERROR = "server_error"
    TIMEOUT_STATUS = "timeout_status"  # 408, 504, 524 said by the upstream
    BAD_REQUEST = "bad_request"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    UNSUPPORTED_PARAMETER = "unsupported_parameter"
    AUTH = "auth"  # our own key was refused
    PAYMENT = "payment"
    NOT_FOUND = "not_found"  # the upstream does not know a configured model
    UNKNOWN_ADAPTER = "unknown_adapter"  # it does not know the fine-tune that the client named
    NOT_LOADED = "not_loaded"  # it knows the model and cannot load it, now or ever
    NO_CAPACITY = "no_capacity"  # our own pool or queue in front of the target is full
    ENGINE_DOWN = "engine_down"  # the local engine is not running, with its reason
    CLIENT_LEFT = "client_left"
    SHUTTING_DOWN = "shutting_down"  # the gateway itself ended the attempt


class Action(StrEnum):
    """What was done to a parameter; the closed vocabulary of ``x-gateway-adjusted``."""

    DROPPED = "dropped"
    RENAMED = "renamed"
    CLAMPED = "clamped"
    MAPPED = "mapped"
    EMULATED = "emulated"
    SPLIT = "split"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Adjustment:
    """One change made to a request for one target."""

    param: str
    action: Action

    def __str__(self) -> str:
        return f"{self.param}={self.action.value}"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens one attempt consumed; cached tokens are part of the prompt tokens, reasoning of the completion."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class LongPrice:
    """Pico-USD a token of a request with a longer prompt: all its tokens cost this, not only those beyond."""

    above_tokens: int
    """The length of prompt from which on, itself not included."""
    input_ptoken: int
    output_ptoken: int
    cached_input_ptoken: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Pico-USD a token (1 USD per million tokens = 1,000,000); ``None`` where the price is unknown."""

    input_ptoken: int
    output_ptoken: int
    cached_input_ptoken: int | None = None
    long: tuple[LongPrice, ...] = ()
    """What longer prompts cost, the shorter ones first."""


class EventKind(StrEnum):
    """What an event of a stream carries, most important first when it carries several things."""

    ERROR = "error"
    CONTENT = "content"
    REASONING = "reasoning"
    TOOL_DELTA = "tool_delta"
    FINISH = "finish"
    USAGE = "usage"
    OTHER = "other"
