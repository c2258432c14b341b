"""The parameters that may be sent to a provider that refuses what it does not know."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from adapters.draft import Draft
from adapters.endpoint_patches import CHAT_ONLY
from adapters.patches import leave_out
from adapters.spec import ProviderSpec, Support
from adapters.types import Operation

_SENT: Final = frozenset((Support.NATIVE, Support.LIMITED, Support.CONDITIONAL, Support.RENAMED, Support.IGNORED))
_NULL: Final = msgspec.Raw(b"null")
FOREIGN: Final = frozenset((
    "citation_options", "clear_thinking", "compound_custom", "context_length_exceeded_behavior", "disable_reasoning",
    "disable_tool_validation", "enable_thinking", "include_reasoning", "reasoning", "reasoning_format",
    "reasoning_history", "safety_model", "search_settings", "thinking",
))  # fmt: skip
"""Parameters of single providers. A server that ignores what it does not know would lose them without a word."""
_OF_OPERATION: Final = {
    Operation.CHAT: frozenset(("messages",)),
    Operation.COMPLETIONS: frozenset(("prompt", "suffix", "echo", "best_of", "max_tokens")),
    Operation.EMBEDDINGS: frozenset(("input", "encoding_format", "dimensions", "user", "model")),
}


def _of(operation: Operation, known: AbstractSet[str], own: AbstractSet[str]) -> AbstractSet[str]:
    match operation:
        case Operation.EMBEDDINGS:
            return own
        case Operation.COMPLETIONS:
            return (known - CHAT_ONLY) | own
        case _:
            return known | own


def known_parameters(spec: ProviderSpec) -> set[str]:
    """The parameters that *spec* says may be sent."""
    known = {name.partition(".")[0] for name, facts in spec.params.items() if facts.support in _SENT}
    known |= {facts.to for facts in spec.params.values() if facts.to is not None}
    # Openers of a remark, as in "top_k(default 40)", are not part of a name.
    known |= {name.partition("(")[0].partition(".")[0] for name in spec.extra_params}
    known |= {"model", "stream_options", *spec.defaults}
    return known if "stream" in spec.params else known | {"stream"}


class AllowList:
    """Leaves out, or refuses, whatever a provider does not know; compiled once from its file."""

    def __init__(self, spec: ProviderSpec, provider: str, added: AbstractSet[str]) -> None:
        """*added*: parameters that the target's patches may bring in."""
        self._provider = provider
        known = known_parameters(spec) | added
        self._allowed = {operation: frozenset(_of(operation, known, own)) for operation, own in _OF_OPERATION.items()}

    def __call__(self, draft: Draft) -> None:
        """Make *draft* hold only what the provider knows, each with a value."""
        body = draft.body
        unknown = body.keys() - self._allowed[draft.operation]
        for name in sorted(unknown):
            leave_out(draft, name, self._provider, "It takes only parameters it knows.")
        if _NULL in body.values():
            for name in [name for name, value in body.items() if value == _NULL]:
                del body[name]
