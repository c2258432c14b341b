"""Patches: pure functions from one body to the next, compiled from a provider file's ``params``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from adapters.draft import Draft, Unsupported
from adapters.errors import ProviderError
from adapters.types import Action, FailureKind

# Values with which a client says "off" or the default. They are no use of a parameter: SDKs send them unasked, and a
# provider that lacks the parameter can serve the request perfectly well.
NEUTRAL: Final[Mapping[str, frozenset[bytes]]] = {
    "n": frozenset((b"1",)),
    "logprobs": frozenset((b"false",)),
    "top_logprobs": frozenset((b"0",)),
    "logit_bias": frozenset((b"{}",)),
    "tools": frozenset((b"[]",)),
    "tool_choice": frozenset((b'"none"', b'"auto"')),
    "parallel_tool_calls": frozenset((b"true",)),
    "frequency_penalty": frozenset((b"0", b"0.0")),
    "presence_penalty": frozenset((b"0", b"0.0")),
    "store": frozenset((b"false",)),
    "stop": frozenset((b"[]",)),
    "modalities": frozenset((b'["text"]',)),
    "response_format": frozenset((b'{"type":"text"}', b'{"type": "text"}')),
    "echo": frozenset((b"false",)),
    "best_of": frozenset((b"1",)),
    "suffix": frozenset((b'""',)),
    "stream": frozenset((b"false",)),
    "temperature": frozenset((b"1", b"1.0")),
    "top_p": frozenset((b"1", b"1.0")),
}
_LONGEST_NEUTRAL: Final = 64
"""Bytes of the longest value that may still be one of `NEUTRAL`, however widely it is written."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

CONTRACT: Final = frozenset({
    "stream", "max_tokens", "max_completion_tokens", "n", "stop", "logprobs", "top_logprobs", "logit_bias",
    "response_format", "tools", "tool_choice", "parallel_tool_calls", "modalities", "audio", "web_search_options",
    "functions", "function_call", "echo", "suffix", "best_of", "dimensions", "encoding_format",
})  # fmt: skip
"""Parameters an application relies on: an answer that ignores one is wrong (decision 12)."""

ADVISORY: Final = frozenset({
    "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "verbosity",
})  # fmt: skip
"""Parameters that change nothing of what is generated. All others steer it and count as sampling."""

# Takes the draft, whose body it may change; only called when its parameter is in it.
Patch = Callable[[Draft], None]


def is_neutral(param: str, value: msgspec.Raw) -> bool:
    """True when *value* asks for nothing, however it is written: `[ ]` and `1.00` are `[]` and `1`."""
    raw = bytes(value)
    if raw == b"null":
        return True
    neutral = NEUTRAL.get(param)
    if neutral is None:
        return False
    # Words can be written in one way only, and most values are as the usual encoders write them.
    if raw in neutral or raw[0] in b'"tf' or len(raw) > _LONGEST_NEUTRAL:
        return raw in neutral
    try:
        return _encode(_decode(raw)) in neutral
    except msgspec.DecodeError:  # a number beyond all bounds
        return False


def leave_out(draft: Draft, param: str, provider: str, reason: str = "", *, refuse: bool = False) -> None:
    """Take *param*, which the target lacks, out of the draft; UNSUPPORTED_PARAMETER where that may not be.

    What may be left out follows from the parameter's class and from `Draft.unsupported`; a neutral value always goes
    without a word. *refuse*: the provider's file says that nothing less will do.
    """
    if is_neutral(param, draft.body.pop(param)):
        return
    strict = draft.unsupported is Unsupported.REJECT and param not in ADVISORY
    if draft.unsupported is not Unsupported.DROP and (refuse or strict or param in CONTRACT):
        raise unsupported(param, provider, reason)
    draft.adjusted(param, Action.DROPPED)
    draft.lossy = draft.lossy or refuse or param in CONTRACT


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Leave out what the target lacks, or refuse it, as `leave_out` says."""

    param: str
    provider: str
    reason: str = ""
    refuse: bool = False

    def __call__(self, draft: Draft) -> None:
        leave_out(draft, self.param, self.provider, self.reason, refuse=self.refuse)


@dataclass(frozen=True, slots=True)
class Rename:
    """Send *param* under the name the provider knows; a value already under that name is the client's own and wins."""

    param: str
    to: str

    def __call__(self, draft: Draft) -> None:
        value = draft.body.pop(self.param)
        if bytes(value) == b"null" or self.to in draft.body:
            return
        draft.body[self.to] = value
        draft.adjusted(self.param, Action.RENAMED)


@dataclass(frozen=True, slots=True)
class InTurn:
    """Several patches for one parameter; those after the one that took it out have nothing to do."""

    param: str
    patches: tuple[Patch, ...]

    def __call__(self, draft: Draft) -> None:
        for patch in self.patches:
            if self.param not in draft.body:
                return
            patch(draft)


def with_patch(patches: Mapping[str, Patch], param: str, patch: Patch) -> dict[str, Patch]:
    """*patches* with one more for *param*."""
    before = patches.get(param)
    return {**patches, param: patch if before is None else InTurn(param, (before, patch))}


def invalid(param: str, message: str, code: str = "invalid_value") -> ProviderError:
    """The failure of a request that no target can make sense of."""
    return ProviderError(FailureKind.BAD_REQUEST, message, status=400, param=param, code=code, sent=False)


def unsupported(param: str, provider: str, reason: str = "") -> ProviderError:
    """The failure of a target that cannot honour *param*; another target may."""
    message = f"'{param}' is not supported by {provider}."
    return ProviderError(
        FailureKind.UNSUPPORTED_PARAMETER,
        f"{message} {reason}".rstrip(),
        param=param,
        code="unsupported_parameter",
        sent=False,
    )
