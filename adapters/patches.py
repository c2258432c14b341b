"""Patches: pure functions from one body to the next, compiled from a provider file's ``params``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from adapters.draft import Draft
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
}
_ALWAYS_NEUTRAL: Final = frozenset((b"null",))

# Takes the draft, whose body it may change; only called when its parameter is in it.
Patch = Callable[[Draft], None]


def is_neutral(param: str, value: msgspec.Raw) -> bool:
    """True when *value* asks for nothing."""
    raw = bytes(value)
    return raw == b"null" or raw in NEUTRAL.get(param, _ALWAYS_NEUTRAL)


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
class Strip:
    """Leave *param* out, and say so."""

    param: str

    def __call__(self, draft: Draft) -> None:
        if not is_neutral(self.param, draft.body.pop(self.param)):
            draft.adjusted(self.param, Action.DROPPED)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the request for this target if *param* asks for anything; a neutral value is left out instead.

    Clients send ``logprobs: false`` by default, so a mere presence test would turn away requests that the provider
    can serve.
    """

    param: str
    provider: str
    reason: str = ""

    def __call__(self, draft: Draft) -> None:
        if not is_neutral(self.param, draft.body.pop(self.param)):
            raise unsupported(self.param, self.provider, self.reason)


@dataclass(frozen=True, slots=True)
class ToolsIfOffered:
    """Refuse ``tools`` unless the target's model can call them, which *offers* tells once it has been started."""

    provider: str
    offers: Callable[[str], bool | None]
    hint: str = ""

    def __call__(self, draft: Draft) -> None:
        offered = self.offers("tools")
        if offered:
            return
        if is_neutral("tools", draft.body["tools"]):
            del draft.body["tools"]
        elif offered is None:
            message = (
                f"{self.provider} has not been ready yet, and tells only then whether its model takes 'tools'. "
                "Try again in a moment."
            )
            raise ProviderError(FailureKind.ENGINE_DOWN, message, param="tools", sent=False)
        else:
            raise unsupported("tools", self.provider, self.hint)


@dataclass(frozen=True, slots=True)
class AtMost:
    """Refuse a number above *most*."""

    param: str
    provider: str
    most: int

    def __call__(self, draft: Draft) -> None:
        raw = bytes(draft.body[self.param])
        if raw == b"null":
            del draft.body[self.param]
        elif raw.isdigit() and int(raw) > self.most:
            raise unsupported(self.param, self.provider, f"It takes at most {self.most}.")


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
